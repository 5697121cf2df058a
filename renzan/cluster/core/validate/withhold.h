#pragma once

// Takes out of decisions what must not be carried out, and says so to whom it concerns. Pure
// functions.

#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {

// Drops what would build on a job or a node at fault: starts and growth there, and all that makes
// room for a job if part of that room is at fault, so that nobody is stopped in vain. Stops that
// nobody profits from (a node leaves, a cap) stay: they only set free. Pending jobs that lose their
// start or their room wait as kWithheld.
void WithholdFrom(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                  Decisions& decisions);

// Drops everything but the waits.
void WithholdAll(Decisions& decisions);

}  // namespace renzan::cluster
