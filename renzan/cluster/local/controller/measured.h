#pragma once

// What measured times mean for the scheduler. Pure functions.

#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

// How long the job takes to save its work, as far as is known: longer than any grace after which it
// was killed.
std::optional<TimeMs> CheckpointTime(const Measured& measured);

// A warning for the job's owner if that is longer than its grace; else empty.
std::string SlowCheckpointText(const Measured& measured, TimeMs grace_ms);

// Costs that have not been measured stay as they are.
void ApplyMeasured(const Measured& measured, Job& job);

}  // namespace renzan::cluster::local
