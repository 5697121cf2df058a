#pragma once

// When is a job's work worth a checkpoint?

#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Young's interval between checkpoints, sqrt(2 * cost / hazard), hazard being interruptions per
// millisecond of the whole gang (Young 1974; Daly 2006 refines it, which matters only when the cost
// is near the time between interruptions), at most `longest`.
TimeMs CheckpointInterval(TimeMs cost, double interruptions_per_hour, TimeMs longest);

// Running jobs on nodes that may vanish whose last checkpoint is older than their interval; fills
// decisions.checkpoints and lowers decisions.look_again to when the next is due.
void RequestCheckpoints(const Snapshot& snapshot, TimeMs longest, Decisions& decisions);

}  // namespace renzan::cluster
