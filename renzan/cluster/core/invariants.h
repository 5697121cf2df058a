#pragma once

// The scheduler's promises, checked naively and independently of the code that makes them. Used by
// property tests, by every simulation in its checking mode, and by the daemon before it acts.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What is wrong with the world itself: nodes over-allocated, gangs below their minimum, workers on
// nodes that are gone, unsorted jobs. Empty: nothing.
std::vector<std::string> CheckSnapshot(const Snapshot& snapshot);

// What the decisions would break: starts over-allocate no node, no gang starts below its minimum or
// above its maximum, labels and topology are kept, ceilings and caps hold after the starts, nobody
// is stopped twice or without a right to it (on behalf of a job that may preempt or reclaim from
// it), nobody is preempted in vain (with the victims gone, everyone they were stopped for fits at
// the same time), every pending job either starts or has a reason, jobs without checkpoints are not
// resized or backfilled.
std::vector<std::string> CheckDecisions(const Snapshot& snapshot, const Decisions& decisions);

}  // namespace renzan::cluster
