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
constexpr size_t kLongFrame = 10;

// A daemon whose connections end as a list says.
class FollowedDaemonTest : public testing::Test {
 protected:
  struct Connection {
    std::string
        text;  // what arrives of the frame at `offset`, which is longer if there is an error
    int64_t offset = 0;
    double lasts_seconds = 0;
    std::string error = {};    // empty: it ends in order
    bool is_complete = false;  // the last frame says that there is no more
    bool is_raw = false;       // without frames
  };

  std::string Follow(const LogQuery& query) {
    std::string shown;
    FollowOutput(
        {.stream = [this](const std::string& wanted, const auto& take) { Stream(wanted, take); },
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
    if (connection.is_raw) return take(connection.text);
    const spec::OutputPlace place{.attempt = 2, .offset = connection.offset};
    if (connection.error != kAway) take(spec::FrameHead(place, spec::FrameKind::kOutput, 0));
    const bool is_whole = connection.error.empty() || connection.is_complete;
    if (!connection.text.empty())
      take(spec::FrameHead(place, spec::FrameKind::kOutput,
                           is_whole ? connection.text.size() : kLongFrame) +
           connection.text);
    if (connection.is_complete) take(spec::FrameHead(place, spec::FrameKind::kComplete, 0));
    if (!connection.error.empty()) throw Error(ErrorCode::kUnavailable, connection.error);
  }

  std::string ErrorOfFollow(const LogQuery& query, ErrorCode code = ErrorCode::kUnavailable) {
    try {
      Follow(query);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "none";
  }

  ManualClock clock_;
  std::deque<Connection> connections_;
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

// It is back after 55 seconds, is restarted when it has been quiet for 9, and is back after 55
// more.
TEST_F(FollowedDaemonTest, EachAbsenceHasAMinuteHoweverShortTheDaemonWasBack) {
  connections_ = {{.error = "broken"}};
  for (const double lasts_seconds : {9, 0}) {
    connections_.push_back({.lasts_seconds = 55, .error = kAway});
    connections_.push_back({.lasts_seconds = lasts_seconds});
  }
  connections_.push_back({.lasts_seconds = 55, .error = kAway});
  connections_.push_back({.text = "one\n", .is_complete = true});
  EXPECT_EQ(Follow({}), "one\n");
}

TEST_F(FollowedDaemonTest, WhoEndsEachConnectionAtOnceWillGoOnLikeThat) {
  for (int i = 0; i < 100; ++i) connections_.push_back({});
  EXPECT_THAT(ErrorOfFollow({}), HasSubstr("the daemon is ending"));
  EXPECT_LT(clock_.seconds, 100 + 100);
  EXPECT_LT(asked_.size(), 25u);
}

// The daemon stopped while the job was quiet. The job writes its last line before the next one
// starts, which knows at once that the job has ended.
TEST_F(FollowedDaemonTest, AStreamThatDoesNotSayThatItIsCompleteIsNot) {
  connections_ = {{.text = "one\n"}, {.text = "two\n", .offset = 4, .is_complete = true}};
  EXPECT_EQ(Follow({}), "one\ntwo\n");
}

TEST_F(FollowedDaemonTest, WhatIsCompleteMayBreak) {
  connections_ = {{.text = "one\n", .error = "broken", .is_complete = true}};
  EXPECT_EQ(Follow({}), "one\n");
  EXPECT_EQ(asked_.size(), 1u);
}

// Also if it is the next one that answers.
TEST_F(FollowedDaemonTest, AnEarlierDaemonIsNamedAtOnce) {
  for (const char* text :
       {"", "hi\n", "=1\n", "a line that is longer than the head of a frame is\n"})
    for (const bool was_newer : {false, true}) {
      connections_ = {{.text = text, .is_raw = true}};
      if (was_newer) connections_.push_front({.text = "one\n", .error = "broken"});
      asked_.clear();
      EXPECT_THAT(ErrorOfFollow({}, ErrorCode::kConfig),
                  HasSubstr("the daemon is of an earlier version"))
          << text;
      EXPECT_EQ(asked_.size(), was_newer ? 2u : 1u) << text;
    }
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
