#pragma once

// The validator: checks the scheduler's invariants independently of the scheduler's code. Used by
// property tests, by simulations with --check, and by the daemon before it acts.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What is wrong with the snapshot itself: one job (a gang below its minimum, workers on nodes that
// are gone), one node (over-allocated), or, if neither is set, the snapshot as a whole (unsorted
// jobs, invalid indices), in which case no decision can be based on it.
struct SnapshotFault {
  std::string what;
  JobId job = 0;
  int node = -1;
};
std::vector<SnapshotFault> FindFaults(const Snapshot& snapshot);
// The same as text. Empty: the snapshot is valid.
std::vector<std::string> ValidateSnapshot(const Snapshot& snapshot);

// Which invariants the decisions would violate: starts over-allocate no node; no gang starts below
// its minimum or above its maximum; new workers satisfy labels and topology; limits and caps hold
// after the starts; no job is stopped twice, or for a job that may not preempt it; no preemption is
// wasted (once the victims have stopped, all their preemptors fit at the same time); every pending
// job either starts or has a wait reason; jobs without checkpoints are not resized or backfilled;
// no job waits for room that is its by right, or without a claim for jobs of lower priority, and
// none takes room that is kept for one of higher priority (these are not part of Validate() below).
std::vector<std::string> ValidateDecisions(const Snapshot& snapshot, const Decisions& decisions);

// The decisions that may be carried out.
struct Validated {
  // Without those that involve a faulty job or node. Pending jobs that would have started, or for
  // which other jobs were to make room, wait instead (WaitReason::kWithheld).
  Decisions decisions;
  std::vector<std::string> faults;  // of the snapshot
  // Of the decisions. A decision that breaks an invariant is withheld like one that involves a
  // fault; all decisions, if the culprit is not known.
  std::vector<std::string> violations;
};
// For snapshots that can become inconsistent, because a cluster is edited while it runs: a fault
// affects only the jobs and nodes that it involves.
Validated Validate(const Snapshot& snapshot, Decisions decisions);

}  // namespace renzan::cluster
