#pragma once

// One job on the whole cluster: which jobs stop, what that costs, when it can start.

#include <cstdint>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct GrandChallengePlan {
  std::vector<JobId> stops;       // all are requeued at their old position
  std::vector<JobId> loses_work;  // the subset that cannot save its work in time
  int64_t bytes_to_save = 0;      // estimated from each job's last checkpoint
  double gpu_seconds_lost = 0;    // work that will be repeated
  TimeMs earliest_start = 0;      // when the longest grace period has passed
  Placement placement;            // empty: it does not fit even then
};

// `job` need not be in the snapshot; it is planned as a grand challenge.
GrandChallengePlan PlanGrandChallenge(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
