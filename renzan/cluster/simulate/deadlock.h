#pragma once

// Deadlocks of partially placed gangs, which happen without gang scheduling: each gang holds
// resources and waits for those of the others. A pure function.

#include <map>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

// The deadlocked gangs, in order of id: those that could not be completed even if every running job
// ended. A gang that can be completed from unheld resources runs and releases its own, and so on;
// the gangs left at the end wait forever. Ignores gangs that would not fit on the empty cluster.
std::vector<JobId> FindDeadlocked(const Snapshot& snapshot, const std::map<JobId, Placement>& held);

}  // namespace renzan::cluster::simulate
