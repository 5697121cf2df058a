#pragma once

// Snapshots as JSON, so that they can be stored, compared, simulated and used for what-if
// questions. Pure functions.

#include <string>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// One line of JSON: an object with every field of Snapshot under its own name, states in lower-case
// words. kNever, kUnlimited, an unlimited budget and absent values are null. Reads back to exactly
// the same snapshot.
std::string SnapshotToJson(const Snapshot& snapshot);

// Throws Error kData that names the field ("jobs[3].placement[0].node") for text that is not JSON;
// missing, unknown or duplicate keys; values of the wrong type; and snapshots that CheckIndices()
// rejects.
Snapshot SnapshotFromJson(std::string_view text);

}  // namespace renzan::cluster::spec
