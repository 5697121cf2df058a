#pragma once

// The scheduler's promises, checked naively and independently of the code that makes them. Used by
// property tests, by every simulation in its checking mode, and by the daemon before it acts.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What is wrong with the snapshot itself: with one job (a gang below its minimum, workers on nodes
// that are gone), with one node (over-allocated), or, if neither is named, with all of it (unsorted
// jobs, indices that point nowhere): then nothing can be decided by it.
struct SnapshotFault {
  std::string what;
  JobId job = 0;
  int node = -1;
};
std::vector<SnapshotFault> FindFaults(const Snapshot& snapshot);
// The same in words. Empty: nothing.
std::vector<std::string> ValidateSnapshot(const Snapshot& snapshot);

// What the decisions would break: starts over-allocate no node, no gang starts below its minimum or
// above its maximum, labels and topology are kept, limits and caps hold after the starts, nobody
// is stopped twice or without a right to it (on behalf of a job that may preempt or reclaim from
// it), nobody is preempted in vain (with the victims gone, everyone they were stopped for fits at
// the same time), every pending job either starts or has a reason, jobs without checkpoints are not
// resized or backfilled. Labels and topology bind where workers are new.
std::vector<std::string> ValidateDecisions(const Snapshot& snapshot, const Decisions& decisions);

// The decisions that may be carried out.
struct Validated {
  // Without those that touch a job or a node at fault. Pending jobs that would have started, or
  // that others were to make room for, wait instead (WaitReason::kWithheld).
  Decisions decisions;
  std::vector<std::string> faults;      // of the snapshot
  std::vector<std::string> violations;  // of the decisions: if any, none of them may be carried out
};
// For a world that people edit while it runs: a fault of the snapshot holds up whom it concerns,
// and nobody else.
Validated Validate(const Snapshot& snapshot, Decisions decisions);

}  // namespace renzan::cluster
