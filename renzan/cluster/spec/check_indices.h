#pragma once

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// Throws Error kData, naming the place, where a snapshot that was read could not be walked safely:
// indices that point nowhere, jobs and placements out of order, counts below their minimum. Whether
// the world it shows is a possible one is ValidateSnapshot()'s question (core/invariants.h).
void CheckIndices(const Snapshot& snapshot);

}  // namespace renzan::cluster::spec
