#pragma once

// Moves running jobs together, so that a gang finds nodes that are whole: on a full cluster what is
// free is spread over many nodes in pieces. A job is moved only into room that is free now, and
// only if the gang then fits, so no move is wasted; jobs that may be stopped for the gang may also
// be stopped.
//
// Moves end: each lets a pending gang start, and a job pays for its moves from the same share of
// its service as for preemptions (service_levels.h). Pure functions.

#include <optional>
#include <vector>

#include "renzan/cluster/core/preempt/preemption.h"

namespace renzan::cluster {

struct Move {
  int job;  // in Snapshot::jobs
  Placement target;
};

struct CompactionPlan {
  std::vector<Victim> stops;
  std::vector<Move> moves;
  Placement placement;  // of the gang, at its minimum
};

// Nothing if there is no such plan, or if its cost (GPU time that the moved jobs spend saving and
// restarting) exceeds the gang's expected gain: as long again as it has waited.
std::optional<CompactionPlan> PlanCompaction(const ClusterView& view, const Quota& quota,
                                             const Occupants& occupants,
                                             const Preemption& preemption,
                                             const Preemptor& preemptor,
                                             TimeMs min_between_resizes);

}  // namespace renzan::cluster
