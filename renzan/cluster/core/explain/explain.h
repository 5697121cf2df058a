#pragma once

// Why is a job pending? The constraint that fails and by how much, the smallest changes that would
// start it now, and when it will probably start. Pure functions of the snapshot.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/explain/changes.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Explanation {
  JobId job = 0;
  WaitReason reason = WaitReason::kResources;
  // One sentence: "needs one worker with 8 GPUs; room now for 0; n0 has 6 of 8 GPUs free".
  std::string why;
  // Each would start the job now, smallest change first: "with 6 GPUs per worker instead of 8",
  // "with 1 more node of pool a100".
  std::vector<std::string> would_start_with;
  // By when it starts in half of all cases, and in 9 of 10, and what that rests on: "9 simulated
  // futures ... after the end of 2 other jobs". None: no such time could be predicted.
  std::optional<TimeMs> estimated_start, estimated_start_p90;
  std::string estimate_rests_on;
  int queue_position = 0;  // in the pending queue; 1: next
  std::string ahead;       // who goes first by fair share (ahead.h); "": nobody
};

struct ExplainOptions {
  ScheduleOptions scheduling;
  SubmissionRules rules;
  // In total; at most half of it for changes, the rest for the estimate. Parts of the answer that
  // would need more are left out.
  int max_cycles = 300;
  std::function<bool()> cancelled;  // called before each cycle: whether the requester has gone away
};

// Explains a pending job. CHECKs that it is one.
Explanation Explain(const Snapshot& snapshot, JobId job, const ExplainOptions& options = {});

// Why the job can never run here, even if the cluster were empty and every node bought that may be
// bought for it (pools.h); "" if it can run. The job need not be in the snapshot.
std::string WhyInfeasible(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
