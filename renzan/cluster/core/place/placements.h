#pragma once

// Adding up placements. All are sorted by node, and so is what comes back. Pure functions.

#include <map>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Workers of each node of a placement.
std::map<int, int> WorkersByNode(const Placement& placement);

// On each node what both have together.
Placement Sum(const Placement& a, const Placement& b);
// On each node the larger of both: what a job holds that moves from one to the other.
Placement Union(const Placement& a, const Placement& b);
// What `a` has on a node beyond what `b` has there.
Placement Difference(const Placement& a, const Placement& b);

// Where a job holds room now: while it is resized, where it is and where it is to be.
Placement HeldBy(const Job& job);

}  // namespace renzan::cluster
