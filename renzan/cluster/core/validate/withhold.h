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
// also counts as faulty if a job that, by its state, holds nothing has workers there. Stops without
// a preemptor (node leaving, user cap) stay: they only release resources. Pending jobs that lose
// their start or their preemptions wait as kWithheld.
void WithholdFrom(const Snapshot& snapshot, const std::vector<SnapshotFault>& faults,
                  Decisions& decisions);

// Drops the decisions about these jobs (starts, stops, resizes, reservations) and those that make
// room for them; if that drops a stop, also all others that make room for the same job. These jobs
// wait as kWithheld. Returns whether anything was dropped.
bool WithholdFor(const std::set<JobId>& jobs, Decisions& decisions);

// Drops everything but the waits. Reservations stay as they are.
void WithholdAll(const Snapshot& snapshot, Decisions& decisions);

}  // namespace renzan::cluster
