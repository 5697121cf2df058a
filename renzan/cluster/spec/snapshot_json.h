#pragma once

// The scheduler's view as text, so that it can be kept, compared, simulated and asked "what if".
// Pure functions.

#include <string>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// One JSON object with every field of Snapshot under its own name, states in lower-case words.
// kNever, kUnlimited, an unlimited budget and absent values are null. It reads back to exactly the
// same snapshot.
std::string SnapshotToJson(const Snapshot& snapshot);

// Throws Error kData that names the place ("jobs[3].placement[0].node") for text that is not JSON,
// lacks a key, has one too many or twice, or has a value of the wrong type; for indices that point
// nowhere; for jobs and placements that are not sorted, and for counts that cannot be.
Snapshot SnapshotFromJson(std::string_view text);

}  // namespace renzan::cluster::spec
