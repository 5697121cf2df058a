#pragma once

// Arithmetic on placements. All inputs and results are sorted by node. Pure functions.

#include <map>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

std::map<int, int> WorkersByNode(const Placement& placement);

Placement Sum(const Placement& a, const Placement& b);
// The larger count on each node: what a job holds while it moves from one to the other.
Placement Union(const Placement& a, const Placement& b);
// On each node the workers of `a` in excess of those of `b`.
Placement Difference(const Placement& a, const Placement& b);

// Whether they have a node in common.
bool Overlap(const Placement& a, const Placement& b);

// Where the job holds resources now: while it is resized, its old and its new placement.
Placement HeldBy(const Job& job);

}  // namespace renzan::cluster
