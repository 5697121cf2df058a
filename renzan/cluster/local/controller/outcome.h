#pragma once

// What becomes of a job whose attempt has ended. Pure.

#include <string>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

// What the user has said about it.
struct RetryPolicy {
  int retries = 0;
  TimeMs backoff_ms = 1000;
  TimeMs timeout_ms = 0;  // 0: none
  // Told to stop it saves its work and exits 75, so that exit 0 says that it was done. Of others
  // exit 0 after SIGTERM may be mere politeness.
  bool saves_on_stop = false;
};

struct Outcome {
  RecordState state = RecordState::kPending;  // kPending, kResizing (starts at its target) or ended
  TimeMs backoff_ms = 0;
  bool failure = false;  // counts as one of the job
  bool requeue = false;  // counts as an attempt that came to nothing
  std::string text;      // for the job's events
};

// The longest pause before another attempt.
inline constexpr TimeMs kLongestBackoffMs = 3'600'000;

// `base` doubled for each of the `times` before this one.
TimeMs Backoff(TimeMs base, int times);

// `job` and `attempt` as they were before the end; the attempt's time is in `end` only.
Outcome OutcomeOf(const JobRecord& job, const AttemptRecord& attempt, const AttemptEnd& end,
                  const RetryPolicy& policy);

// The supervisor is gone and nobody knows how the workers ended.
Outcome OutcomeOfLost(const JobRecord& job, const RetryPolicy& policy);

const char* NameOf(EndedBy by);

}  // namespace renzan::cluster::local
