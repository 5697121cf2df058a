#pragma once

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// Throws Error kData, naming the field, if a parsed snapshot would be unsafe to use: invalid
// indices, jobs or placements out of order, counts below their minimum. ValidateSnapshot()
// (core/validate/invariants.h) checks whether it is consistent.
void CheckIndices(const Snapshot& snapshot);

}  // namespace renzan::cluster::spec
