#pragma once

// Gangs that hold part of their places and wait for each other. A pure function.

#include <map>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

// The gangs that could not be completed though everything that runs ended now: whoever can be
// completed from what is not held by others runs and gives its places back, and so on; who is left
// waits for ever. Gangs that would not fit into the empty cluster are not counted. In order of id.
std::vector<JobId> FindDeadlocked(const Snapshot& snapshot, const std::map<JobId, Placement>& held);

}  // namespace renzan::cluster::simulate
