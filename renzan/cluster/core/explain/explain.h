#pragma once

// "Why is my job waiting?": the constraint that fails and by how much, the smallest changes that
// would start it now, and when it will probably start. Pure functions of the snapshot.

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
  // One sentence: "needs 2 nodes with 8 free GPUs each; 1 has them (n3), 4 more have 5 to 7".
  std::string why;
  // Each starts the job at once if it came true, smallest first: "with 6 GPUs a worker instead of
  // 8", "if queue vision returned 2 GPUs", "with 1 more node of pool a100".
  std::vector<std::string> would_start_with;
  // By when it will probably run, and what that rests on: "when job 12 ends (its status says in 20
  // minutes)". None: nothing known leads to a start.
  std::optional<TimeMs> estimated_start;
  std::string estimate_rests_on;
  int place_in_line = 0;  // 1: next
};

struct ExplainOptions {
  ScheduleOptions scheduling;
  SubmissionRules rules;
  // All together; what is not found out by then is not said. Of these, changes may use up to half.
  int max_cycles = 300;
  std::function<bool()> cancelled;  // asked before each cycle: nobody waits for the answer any more
};

// Explains a pending job. CHECKs that it is one.
Explanation Explain(const Snapshot& snapshot, JobId job, const ExplainOptions& options = {});

// Why the job can never run here, though the cluster were empty and all bought for it that may be
// (pools.h); "" if it can. For a job that is being submitted it need not be in the snapshot.
std::string WhyInfeasible(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
