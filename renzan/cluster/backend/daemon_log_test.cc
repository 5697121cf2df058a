#include "renzan/cluster/backend/daemon_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/cluster/spec/output_frames.h"

namespace renzan::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kAway = "nothing listens there";

// A daemon whose connections end as a list says.
class FollowedDaemonTest : public testing::Test {
 protected:
  struct Connection {
    std::string text;  // what arrives of a frame of 10 bytes at `offset`
    int64_t offset = 0;
    double lasts_seconds = 0;
    std::string error = {};    // empty: it ends in order
    bool is_complete = false;  // and there is no more output then
  };

  std::string Follow(const LogQuery& query) {
    std::string shown;
    FollowOutput(
        {.stream = [this](const std::string& wanted, const auto& take) { Stream(wanted, take); },
         .is_complete = [this] { return is_complete_; },
         .waiting = {clock_, [this](double seconds) { clock_.seconds += seconds; }}},
        "7", query, [&](std::string_view text) { shown += text; });
    return shown;
  }

  void Stream(const std::string& wanted, const std::function<void(std::string_view)>& take) {
    asked_.push_back(wanted);
    if (connections_.empty()) throw Error(ErrorCode::kUnavailable, kAway);
    const Connection connection = connections_.front();
    connections_.pop_front();
    clock_.seconds += connection.lasts_seconds;
    const spec::OutputPlace place{.attempt = 2, .offset = connection.offset};
    if (connection.error != kAway) take(spec::FrameHead(place, false, 0));
    if (!connection.text.empty()) take(spec::FrameHead(place, false, 10) + connection.text);
    is_complete_ = connection.is_complete;
    if (!connection.error.empty()) throw Error(ErrorCode::kUnavailable, connection.error);
  }

  std::string ErrorOfFollow(const LogQuery& query) {
    try {
      Follow(query);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      return error.what();
    }
    return "none";
  }

  ManualClock clock_;
  std::deque<Connection> connections_;
  bool is_complete_ = false;
  std::vector<std::string> asked_;
};

TEST_F(FollowedDaemonTest, GoesOnWhereItWas) {
  connections_ = {{.text = "one\ntw", .offset = 100, .error = "broken"},
                  {.error = kAway},
                  {.text = "o\n", .offset = 106},
                  {.text = "three\n", .offset = 108, .is_complete = true}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(Follow({.worker = 1, .tail = 5}), "one\ntwo\nthree\n");
  EXPECT_THAT(asked_,
              ElementsAre("worker=1&follow=1&frames=1&tail=5",
                          "worker=1&follow=1&frames=1&attempt=2&from=106&later_attempts=1",
                          "worker=1&follow=1&frames=1&attempt=2&from=106&later_attempts=1",
                          "worker=1&follow=1&frames=1&attempt=2&from=108&later_attempts=1"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("the output of job 7 breaks off (broken): trying for a minute"));
  EXPECT_THAT(said, HasSubstr("breaks off (the daemon is ending)"));
  EXPECT_THAT(said, Not(HasSubstr(kAway)));
}

TEST_F(FollowedDaemonTest, FollowsOneAttemptIfAsked) {
  connections_ = {{.text = "one\n", .error = "broken"}, {.offset = 4, .is_complete = true}};
  EXPECT_EQ(Follow({.attempt = 2}), "one\n");
  EXPECT_THAT(asked_, ElementsAre("worker=0&follow=1&frames=1&attempt=2",
                                  "worker=0&follow=1&frames=1&attempt=2&from=4"));
}

TEST_F(FollowedDaemonTest, GivesUpAfterAMinute) {
  // However long it was connected before, and although it says little.
  connections_ = {{.lasts_seconds = 5000, .error = "broken"}};
  EXPECT_EQ(ErrorOfFollow({}), fmt::format("the output of job 7 breaks off: {}", kAway));
  EXPECT_NEAR(clock_.seconds, 100 + 5000 + 62.5, 2.6);
  EXPECT_LT(asked_.size(), 25u);
}

TEST_F(FollowedDaemonTest, EachBreakHasAMinute) {
  for (int i = 0; i < 20; ++i) connections_.push_back({.lasts_seconds = 50, .error = "broken"});
  connections_.push_back({.is_complete = true});
  EXPECT_EQ(ErrorOfFollow({}), "none");
}

TEST_F(FollowedDaemonTest, AConnectionThatEndsAtOnceIsNone) {
  for (int i = 0; i < 100; ++i) connections_.push_back({});
  EXPECT_THAT(ErrorOfFollow({}), HasSubstr("the daemon is ending"));
  EXPECT_LT(clock_.seconds, 100 + 66);
}

TEST_F(FollowedDaemonTest, WithoutADaemonThereIsNothingToWaitFor) {
  EXPECT_THAT(ErrorOfFollow({}), HasSubstr(kAway));
  EXPECT_EQ(clock_.seconds, 100);
}

TEST_F(FollowedDaemonTest, OtherErrorsEndIt) {
  connections_ = {{.text = "one\n", .error = "broken"}, {.text = "two\n", .offset = 4}};
  int calls = 0;
  EXPECT_THROW(FollowOutput({.stream = [&](const std::string& wanted,
                                           const auto& take) { Stream(wanted, take); },
                             .is_complete = [&] { return false; },
                             .waiting = {clock_, [](double) {}}},
                            "7", {},
                            [&](std::string_view text) {
                              if (text == "two\n") throw Error(ErrorCode::kIo, "full");
                              ++calls;
                            }),
               Error);
  EXPECT_EQ(asked_.size(), 2u);
}

}  // namespace
}  // namespace renzan::cluster
