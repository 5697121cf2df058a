#include "renzan/cluster/core/engine/outcome.h"

#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

AttemptEnd End(EndedBy by, int code) {
  return {.by = by, .exit_code = code, .message = "worker 0 ended", .ran_ms = 5};
}

struct Case {
  const char* name;
  RunHistory job;
  std::string stop_reason;
  AttemptEnd end;
  RetryPolicy policy;
  RecordState state;
  TimeMs backoff = 0;
  bool failure = false, requeue = false;
};

TEST(Outcome, FollowsFromHowTheAttemptEnded) {
  const RunHistory running{.state = RecordState::kRunning};
  const RunHistory stopping{.state = RecordState::kStopping};
  const RunHistory resizing{.state = RecordState::kResizing};
  const RunHistory cancelled{.state = RecordState::kStopping, .cancel_requested = true};
  const RunHistory once_failed{.state = RecordState::kRunning, .failures = 1};
  const RetryPolicy none, twice{.retries = 2, .backoff_ms = 100}, saves{.saves_on_stop = true};
  using enum EndedBy;
  using State = RecordState;
  const Case cases[] = {
      {"all 0", running, "", End(kItself, 0), none, State::kDone},
      {"done before SIGTERM", stopping, "preempted", End(kItself, 0), none, State::kDone},
      {"saves, was done", stopping, "preempted", End(kRequest, 0), saves, State::kDone},
      {"resized, but done", resizing, "resized", End(kRequest, 0), saves, State::kDone},
      {"exit 0 without saving", stopping, "preempted", End(kRequest, 0), none, State::kPending},
      {"exit 0 without saving, resized", resizing, "resized", End(kRequest, 0), none,
       State::kResizing},
      {"terminated from outside, exit 0", running, "", End(kRequest, 0), twice, State::kPending,
       100, false, true},
      {"cancelled", cancelled, "", End(kRequest, 143), none, State::kCancelled},
      {"cancelled, exit 0", cancelled, "", End(kRequest, 0), none, State::kCancelled},
      {"stopped, 75", stopping, "preempted", End(kRequest, 75), none, State::kPending},
      {"stopped, killed", stopping, "preempted", End(kRequest, 137), none, State::kPending},
      {"stopped, failed first", stopping, "preempted", End(kWorkerFailed, 1), none,
       State::kPending},
      {"resized", resizing, "resized", End(kRequest, 75), none, State::kResizing},
      {"75 without a request", running, "", End(kItself, 75), twice, State::kPending, 100, false,
       true},
      {"one worker's 75", running, "", End(kWorkerFailed, 75), twice, State::kPending, 100, false,
       true},
      {"failed", running, "", End(kWorkerFailed, 1), none, State::kFailed, 0, true},
      {"failed, retried", running, "", End(kWorkerFailed, 1), twice, State::kPending, 100, true},
      {"failed again", once_failed, "", End(kWorkerFailed, 1), twice, State::kPending, 200, true},
      {"not found", running, "", End(kCannotStart, 127), none, State::kFailed, 0, true},
      {"timeout", running, "", End(kTimeout, 75), twice, State::kTimeout},
      {"timeout while stopping", stopping, "preempted", End(kTimeout, 75), none, State::kTimeout},
      {"node failed", running, "", End(kNodeFailed, 137), none, State::kPending},
      {"node failed in resize", resizing, "resized", End(kNodeFailed, 137), none, State::kPending},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    RunHistory job = each.job;
    job.stop_reason = each.stop_reason;
    const Outcome outcome = OutcomeOf(job, each.end, each.policy);
    EXPECT_EQ(outcome.state, each.state);
    EXPECT_EQ(outcome.backoff_ms, each.backoff);
    EXPECT_EQ(outcome.failure, each.failure);
    EXPECT_EQ(outcome.requeue, each.requeue);
    EXPECT_FALSE(outcome.text.empty());
  }
}

TEST(Outcome, TheTimeoutCoversAllAttempts) {
  const RunHistory job{.state = RecordState::kRunning, .run_ms = 95};
  const RetryPolicy policy{.retries = 9, .timeout_ms = 100};
  EXPECT_EQ(OutcomeOf(job, End(EndedBy::kItself, 1), policy).state, RecordState::kTimeout);
  EXPECT_EQ(OutcomeOf(job, End(EndedBy::kItself, 0), policy).state, RecordState::kDone);
}

TEST(Outcome, ALostAttemptIsNotAFailureOfTheJob) {
  const RunHistory job{.state = RecordState::kRunning, .requeues = 2};
  for (const EndedBy by : {EndedBy::kLost, EndedBy::kNeverStarted}) {
    const Outcome outcome = OutcomeOf(job, End(by, 0), {.backoff_ms = 100});
    EXPECT_EQ(outcome.state, RecordState::kPending);
    EXPECT_EQ(outcome.backoff_ms, 400);
    EXPECT_FALSE(outcome.failure);
    EXPECT_TRUE(outcome.requeue);
    EXPECT_EQ(OutcomeOf({.cancel_requested = true}, End(by, 0), {}).state, RecordState::kCancelled);
  }
}

TEST(Outcome, BackoffDoublesUpToAnHour) {
  EXPECT_EQ(Backoff(1000, 0), 1000);
  EXPECT_EQ(Backoff(1000, 3), 8000);
  EXPECT_EQ(Backoff(1000, 1000), kLongestBackoffMs);
  EXPECT_EQ(Backoff(0, 1'000'000), 0);
  EXPECT_EQ(Backoff(kNever, 2), kLongestBackoffMs);
}

}  // namespace
}  // namespace renzan::cluster
