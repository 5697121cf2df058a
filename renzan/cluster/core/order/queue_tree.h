#pragma once

// Queues are the leaves of trees, of which the parents lend within themselves first. Between two
// queues counts, on either side, what lies below the lowest parent of both: the two queues if they
// have the same parent, their topmost parents if they have none in common. Pure functions; parents
// end after Queue::kMostLevels.

#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// The queue, its parent, the parent's parent and so on.
std::vector<int> LineageOf(const Snapshot& snapshot, int queue);
int TopOf(const Snapshot& snapshot, int queue);
// How many parents the queue is below.
int DepthOf(const Snapshot& snapshot, int queue);
// Whether the queue is `above` or below it.
bool IsWithin(const Snapshot& snapshot, int queue, int above);
// What counts of a queue beside another one.
int SideOf(const Snapshot& snapshot, int queue, int other);
// All parents, each after those below it.
std::vector<int> ParentsUpwards(const Snapshot& snapshot);

}  // namespace renzan::cluster
