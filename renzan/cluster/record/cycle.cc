#include "renzan/cluster/record/cycle.h"

#include <utility>

namespace renzan::cluster::record {

Cycle CopyOf(const CycleView& cycle) {
  Cycle copy{.number = cycle.number,
             .options = cycle.options,
             .snapshot = cycle.snapshot,
             .decisions = cycle.decisions,
             .names = {}};
  for (const Job& job : cycle.snapshot.jobs)
    if (JobName name = cycle.name_of(job.id); !name.name.empty())
      copy.names.emplace_hint(copy.names.end(), job.id, std::move(name));
  return copy;
}

bool Decides(const Snapshot& snapshot, const Decisions& decisions) {
  return !decisions.starts.empty() || !decisions.stops.empty() || !decisions.resizes.empty() ||
         !decisions.checkpoints.empty() || !decisions.scale_out.empty() ||
         !decisions.scale_in.empty() || decisions.reservations != snapshot.reservations;
}

}  // namespace renzan::cluster::record
