#pragma once

// What the scheduler makes of measured times. Pure functions.

#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

// A checkpoint that the job was about to write anyway looks as if it had taken no time: a measured
// time takes effect at once when it is longer than the one before, and else halves it at most.
TimeMs SteadyCheckpoint(std::optional<TimeMs> before, TimeMs measured);

// How long the job takes to save its work, as far as is known: at least for as long as it was once
// given before it was killed.
std::optional<TimeMs> CheckpointTime(const Measured& measured);

// What the job's owner is to be told when that is longer than its grace; else empty.
std::string SlowCheckpointText(const Measured& measured, TimeMs grace_ms);

// Where nothing has been measured the job keeps what it has.
void ApplyMeasured(const Measured& measured, Job& job);

}  // namespace renzan::cluster::local
