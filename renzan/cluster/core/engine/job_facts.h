#pragma once

// What has happened to a job, as its environment records it: rows of the daemon's database, the
// status of a GangJob. A Job (snapshot.h) is what the scheduler sees of it. Plain data, which
// attempts.h changes as attempts begin and end.

#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/engine/named_placement.h"
#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct JobFacts {
  RecordState state = RecordState::kPending;
  int attempts = 0;   // started so far, which is the number of the next one
  int failures = 0;   // of the job itself
  int requeues = 0;   // consecutive, without a failure of the job
  TimeMs run_ms = 0;  // of all attempts that have ended
  std::optional<TimeMs> first_started;
  std::optional<TimeMs> ended;
  std::optional<int> exit_code;  // of the last attempt whose workers ran and were seen to end
  std::string message;           // what happened last, in one line
  // Its expected run time when it was submitted (Job::run_time). Kept until it ends.
  RunTimeQuantiles run_time{};
  // See Job.
  TimeMs eligible_at = 0;
  TimeMs last_resize = 0;
  TimeMs waiting_since = 0;
  int64_t attained_worker_ms = 0;
  int preemptions = 0;
  int reservation_yields = 0;
  std::vector<std::string> failed_on;

  bool operator==(const JobFacts&) const = default;
};

// Of the attempt that has not ended. See Job.
struct AttemptFacts {
  NamedPlacement placement, target;
  TimeMs started = 0;
  bool backfilled = false;
  std::string stop_reason;  // empty unless it was asked to stop
  JobId stopping_for = 0;

  bool operator==(const AttemptFacts&) const = default;
};

}  // namespace renzan::cluster
