#pragma once

// A job avoids the nodes on which it failed soon after its start (Job::failed_on), so that a broken
// node does not get all of its attempts. This is the one place that decides whether it does. A job
// that waits for other nodes does so for an hour: it may fail by its own fault, and the others be
// busy for days.

#include <algorithm>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr TimeMs kAvoidMs = kHour;

// When a pending job that has failed somewhere takes those nodes, too. The hour begins after its
// back-off.
inline TimeMs AvoidsUntil(const Job& job) {
  return std::max(job.waiting_since, job.eligible_at) + kAvoidMs;
}

// Without the nodes that may never come back: cordoned, drained and failed ones.
Snapshot InService(Snapshot snapshot);

// Whether any job has failed on a node that is there.
bool HasAvoidance(const Snapshot& snapshot);

// The same snapshot, in which every job that avoids nodes has a request that excludes them. A job
// that no other node in service, or that can be bought, could ever serve does not avoid any: it
// would wait for ever.
Snapshot WithAvoidance(Snapshot snapshot);

}  // namespace renzan::cluster
