#pragma once

// "When would my jobs start if ...?": the cluster as it is now runs on in a simulation, once as it
// is and once changed. Pure functions.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/simulate/policy.h"

namespace renzan::cluster::simulate {

struct WhatIfRow {
  JobId job = 0;
  bool is_new = false;                  // only the change submits it
  std::optional<TimeMs> before, after;  // when it would start; none: never
};

// One row for each pending job, in order of id. Nobody knows how long jobs run, so: a running job
// ends at its expected_end, and without one it runs as long again as it has run already, at least a
// minute; a pending job runs for `assumed_run_ms` with all its workers. Nothing else is submitted
// and no node is lost.
std::vector<WhatIfRow> WhatIf(const Snapshot& snapshot,
                              const std::function<void(Snapshot&)>& change, const Policy& policy,
                              TimeMs assumed_run_ms = 3'600'000);

// Changes. All throw Error kUsage for a name that there is not, with the nearest.
void AddNodes(Snapshot& snapshot, const std::string& pool, int nodes);  // ready at once
void RemoveNode(Snapshot& snapshot, const std::string& node);           // drained by an operator
void SetGuarantee(Snapshot& snapshot, const std::string& queue, int kind, int64_t amount);
// `job` gets the next free id, which is returned. Its request, queue and user are in the snapshot.
JobId AddJob(Snapshot& snapshot, Job job);

}  // namespace renzan::cluster::simulate
