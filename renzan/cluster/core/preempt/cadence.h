#pragma once

// How often jobs on interruptible nodes should checkpoint.

#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Young's checkpoint interval, sqrt(2 * cost / hazard), at most `longest`; hazard is the whole
// gang's interruptions per millisecond (Young 1974; Daly's 2006 refinement only matters when the
// cost is close to the time between interruptions).
TimeMs CheckpointInterval(TimeMs cost, double interruptions_per_hour, TimeMs longest);

// Adds to decisions.checkpoints the running jobs on interruptible nodes whose last checkpoint is
// older than their interval; lowers decisions.look_again to when the next is due.
void RequestCheckpoints(const Snapshot& snapshot, TimeMs longest, Decisions& decisions);

}  // namespace renzan::cluster
