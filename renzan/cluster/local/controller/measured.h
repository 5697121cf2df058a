#pragma once

// What measured times mean for the scheduler. Pure functions.

#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

// A stop that coincides with a regular checkpoint looks as if it took no time. So a longer time
// than before takes effect immediately, and a shorter one at most halves it.
TimeMs SteadyCheckpoint(std::optional<TimeMs> before, TimeMs measured);

// How long the job takes to save its work, as far as is known: longer than any grace after which it
// was killed.
std::optional<TimeMs> CheckpointTime(const Measured& measured);

// A warning for the job's owner if that is longer than its grace; else empty.
std::string SlowCheckpointText(const Measured& measured, TimeMs grace_ms);

// Costs that have not been measured stay as they are.
void ApplyMeasured(const Measured& measured, Job& job);

}  // namespace renzan::cluster::local
