#pragma once

// The next state of a job whose attempt has ended. Pure.

#include <string>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

// What the job's specification says about it.
struct RetryPolicy {
  int retries = 0;
  TimeMs backoff_ms = 1000;
  TimeMs timeout_ms = 0;  // 0: none
  // Asked to stop, it saves its work and exits with 75, so that exit status 0 means done. Other
  // programs may exit with 0 after SIGTERM without being done.
  bool saves_on_stop = false;
};

struct Outcome {
  RecordState state = RecordState::kPending;  // kPending, kResizing (starts at its target) or ended
  TimeMs backoff_ms = 0;
  bool failure = false;  // counts against the job's retries
  bool requeue = false;  // counts as a fruitless attempt, not the job's fault
  std::string text;      // for the job's events
};

// The longest backoff before another attempt.
inline constexpr TimeMs kLongestBackoffMs = 3'600'000;

// `base`, doubled for each of the `times` before this one.
TimeMs Backoff(TimeMs base, int times);

// `job` and `attempt` as they were before the end; the attempt's running time is only in `end`.
Outcome OutcomeOf(const JobRecord& job, const AttemptRecord& attempt, const AttemptEnd& end,
                  const RetryPolicy& policy);

// The supervisor died without reporting how the workers ended.
Outcome OutcomeOfLost(const JobRecord& job, const RetryPolicy& policy);

}  // namespace renzan::cluster::local
