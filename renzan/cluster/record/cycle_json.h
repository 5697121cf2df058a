#pragma once

// Cycles and decisions as JSON. Pure functions.

#include <string>
#include <string_view>

#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

// Two lines: an object with the number, the options, the decisions and the names of jobs, every
// field under its own name; then the snapshot (spec/snapshot_json.h). Reads back to exactly the
// same.
std::string CycleToJson(const Cycle& cycle);
// Throws Error kData that names the field.
Cycle CycleFromJson(std::string_view text);

std::string DecisionsToJson(const Decisions& decisions);

// As in JSON: "node_leaving", "user_cap".
const char* WordOf(StopReason reason);
const char* WordOf(WaitReason reason);

}  // namespace renzan::cluster::record
