#pragma once

// When would jobs start if the cluster changed? Simulates the current cluster once unchanged and
// once with the change. Pure functions.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/simulate/policy.h"

namespace renzan::cluster::simulate {

struct WhatIfRow {
  JobId job = 0;
  bool is_new = false;                  // submitted by the change
  std::optional<TimeMs> before, after;  // when it would start; none: never
};

// One row per pending job, in order of id. Run times are unknown, so a running job is assumed to
// end at its expected_end, or else to run for as long as half of the jobs like it
// (core/predict/run_times.h); a pending job runs for `assumed_run_ms` with max_workers. No other
// jobs are submitted and no node fails.
std::vector<WhatIfRow> WhatIf(const Snapshot& snapshot,
                              const std::function<void(Snapshot&)>& change, const Policy& policy,
                              TimeMs assumed_run_ms = 3'600'000);

// Changes. All throw Error kUsage for an unknown name, with the nearest.
void AddNodes(Snapshot& snapshot, const std::string& pool, int nodes);  // ready immediately
void RemoveNode(Snapshot& snapshot, const std::string& node);           // drained by an operator
void SetGuarantee(Snapshot& snapshot, const std::string& queue, int kind, int64_t amount);
// Gives `job` the next free id and returns it. Its request, queue and user must be in the snapshot.
JobId AddJob(Snapshot& snapshot, Job job);

}  // namespace renzan::cluster::simulate
