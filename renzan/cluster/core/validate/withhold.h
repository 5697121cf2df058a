#pragma once

// Removes decisions that must not be carried out. Pure functions.

#include <set>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {

// Drops decisions that rely on a faulty job or node: starts and growth there, and all preemptions
// for a job if one of its victims or their nodes is faulty, so that no preemption is wasted. A node
// also counts as faulty if a job that holds nothing, by its state, has workers there. Stops without
// a preemptor (node leaving, user cap) stay: they only release resources. Pending jobs that lose
// their start or their preemptions wait as kWithheld.
void WithholdFrom(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                  Decisions& decisions);

// Drops what was decided about these jobs: their starts, stops, resizes and reservations, and what
// makes room for them; so also what makes room for a job together with a stop that is dropped. They
// wait as kWithheld. Returns whether there was anything.
bool WithholdFor(const std::set<JobId>& jobs, Decisions& decisions);

// Drops everything but the waits. Reservations stay as they are.
void WithholdAll(const Snapshot& snapshot, Decisions& decisions);

}  // namespace renzan::cluster
