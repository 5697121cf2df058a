#pragma once

// One job on the whole cluster: who stops, what it costs, when it can start.

#include <cstdint>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct GrandChallengePlan {
  std::vector<JobId> stops;     // all of them come back afterwards, with their place
  std::vector<JobId> loses;     // of these: those that cannot save their work, or not in time
  int64_t bytes_to_save = 0;    // by the last checkpoint of each
  double gpu_seconds_lost = 0;  // work that will be repeated
  TimeMs earliest_start = 0;    // when the longest grace has passed
  Placement placement;          // empty: it does not fit even then
};

// `job` need not be in the snapshot; it is planned as if it had grand_challenge set.
GrandChallengePlan PlanGrandChallenge(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
