#pragma once

// The next state of a job whose attempt has ended. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Why the workers ended. kItself does not mean success: the last running worker may have failed,
// see exit_code.
enum class EndedBy {
  kItself,
  kRequest,
  kTimeout,
  kNodeFailed,
  kWorkerFailed,
  kCannotStart,   // its command cannot be run
  kNeverStarted,  // its workers were not started, or not all of them in time
  kLost,          // nobody saw how its workers ended
};
// Whether its workers ran, and were seen to end.
constexpr bool HasRun(EndedBy by) { return by < EndedBy::kNeverStarted; }

struct AttemptEnd {
  EndedBy by = EndedBy::kItself;
  struct Worker {
    int exit_code = 0;  // 128 + signal if killed, as in a shell
    int signal = 0;     // 0: it exited
  };
  std::vector<Worker> workers;  // by rank
  int exit_code = 0;    // the attempt's: 0 if all are 0, else that of the first worker to fail
  std::string message;  // one line about it: "worker 2 on n1 was killed by signal 9"
  std::string failed_on = {};  // the node of the first worker to fail; empty: none, or not known
  int64_t started_ms = 0, ended_ms = 0;  // Unix time
  int64_t ran_ms = 0;                    // by the monotonic clock
  // The grace period after which running workers were killed at a stop request; 0: none were
  // killed.
  double killed_after_seconds = 0;
};

// A job's history when its attempt ends.
struct RunHistory {
  RecordState state = RecordState::kRunning;
  bool cancel_requested = false;
  std::string stop_reason;  // of this attempt; empty unless it was asked to stop
  // Before this attempt:
  int failures = 0;   // of the job itself
  int requeues = 0;   // consecutive, without a failure of the job
  TimeMs run_ms = 0;  // of all attempts
};

// What the job's specification says about it.
struct RetryPolicy {
  int retries = 0;
  TimeMs backoff_ms = 1000;
  TimeMs timeout_ms = 0;  // 0: none
  // When asked to stop, it saves its work and exits with 75, so exit status 0 means done. Other
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

// Of workers that failed at the same time, as far as is known, the one whose exit status (128 +
// signal if killed) has the greatest severity was probably the first: a worker that lost a peer
// (kUnavailable) or asks to be run again (kTempFail) reacts to another.
int Severity(int exit_code);

Outcome OutcomeOf(const RunHistory& job, const AttemptEnd& end, const RetryPolicy& policy);

// The node that the job avoids from now on, because the attempt failed there before it had run for
// `early_ms`; "" if there is none.
std::string FailedEarlyOn(const AttemptEnd& end, const Outcome& outcome, TimeMs early_ms);

}  // namespace renzan::cluster
