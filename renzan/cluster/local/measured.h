#pragma once

// What the scheduler makes of measured times. Pure functions.

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/records.h"

namespace renzan::cluster::local {

// A checkpoint that the job was about to write anyway looks as if it had taken no time: a measured
// time takes effect at once when it is longer than the one before, and else halves it at most.
TimeMs SteadyCheckpoint(std::optional<TimeMs> before, TimeMs measured);

// Where nothing has been measured the job keeps what it has.
void ApplyMeasured(const Measured& measured, Job& job);

}  // namespace renzan::cluster::local
