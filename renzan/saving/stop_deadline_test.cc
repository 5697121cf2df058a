#include "renzan/saving/stop_deadline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/base/clock_testing.h"
#include "renzan/base/file/file.h"
#include "renzan/observe/stop_notice.h"

namespace renzan {
namespace {

class StopDeadlineTest : public ::testing::Test {
 protected:
  // A notice that leaves that much time from now.
  void Notify(double seconds) {
    WriteFileAtomically(path_, fmt::format("{{\"grace_seconds\": {}, \"deadline\": {:.3f}}}\n",
                                           seconds, clock_.UnixSeconds() + seconds));
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "stop.json";
  ManualClock clock_;
};

TEST_F(StopDeadlineTest, IsTheGracePeriodWithoutANotice) {
  StopDeadline deadline(path_, 30, clock_);
  EXPECT_TRUE(std::isinf(deadline.SecondsLeft())) << "no stop yet";
  deadline.Begin();
  clock_.seconds += 10;
  EXPECT_DOUBLE_EQ(deadline.SecondsLeft(), 20);
  StopDeadline unknown("", 0, clock_);
  unknown.Begin();
  EXPECT_TRUE(std::isinf(unknown.SecondsLeft()));
}

TEST_F(StopDeadlineTest, IsTheNoticesWhichCanBringItForwardOnly) {
  Notify(20);
  StopDeadline deadline(path_, 300, clock_);
  deadline.Begin();
  EXPECT_NEAR(deadline.SecondsLeft(), 20, 0.01);
  Notify(5);
  EXPECT_NEAR(deadline.SecondsLeft(), 20, 0.01) << "before the next signal";
  deadline.Update();
  EXPECT_NEAR(deadline.SecondsLeft(), 5, 0.01);
  Notify(50);
  deadline.Update();
  EXPECT_NEAR(deadline.SecondsLeft(), 5, 0.01);
  StopDeadline without_grace(path_, 0, clock_);
  without_grace.Begin();
  EXPECT_NEAR(without_grace.SecondsLeft(), 50, 0.01);
}

TEST_F(StopDeadlineTest, IgnoresANoticeOfAnEarlierStop) {
  Notify(20);
  clock_.seconds += 3600;
  StopDeadline deadline(path_, 300, clock_);
  deadline.Begin();
  EXPECT_DOUBLE_EQ(deadline.SecondsLeft(), 300);
  deadline.Update();
  EXPECT_DOUBLE_EQ(deadline.SecondsLeft(), 300);
}

TEST_F(StopDeadlineTest, IgnoresANoticeThatItCannotRead) {
  EXPECT_FALSE(ReadStopDeadline(path_)) << "no file";
  for (const char* text : {"", "{", "[]", "12", "{}", R"({"deadline": "soon"})",
                           R"({"deadline": 1e999})", R"({"deadline": null})"}) {
    WriteFileAtomically(path_, text);
    StopDeadline deadline(path_, 300, clock_);
    deadline.Begin();
    EXPECT_DOUBLE_EQ(deadline.SecondsLeft(), 300) << text;
  }
  WriteFileAtomically(path_, R"({"grace_seconds": 20, "deadline": 1800000020.5})");
  EXPECT_EQ(ReadStopDeadline(path_), 1800000020.5);
  EXPECT_FALSE(ReadStopDeadline(directory_.path())) << "a directory";
}

}  // namespace
}  // namespace renzan
