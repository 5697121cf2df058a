#include "renzan/cluster/core/explain/free_room.h"

#include <algorithm>

#include "renzan/cluster/core/labels.h"

namespace renzan::cluster {

FreeRoom::FreeRoom(const Snapshot& snapshot) : is_spoken_for_(snapshot.nodes.size()) {
  for (const Node& node : snapshot.nodes) free_.push_back(node.capacity);
  for (const Job& job : snapshot.jobs)
    for (const Placement* placement : {&job.placement, &job.target}) {
      Take(snapshot.worker_requests[job.request], *placement);
      if (job.state == JobState::kRunning) continue;
      for (const Placed& placed : *placement) is_spoken_for_[placed.node] = true;
    }
  for (const Reservation& reservation : snapshot.reservations)
    for (const Placed& placed : reservation.placement) is_spoken_for_[placed.node] = true;
  for (size_t node = 0; node < snapshot.nodes.size(); ++node)
    if (snapshot.nodes[node].state != NodeState::kReady) is_spoken_for_[node] = true;
}

void FreeRoom::Take(const WorkerRequest& request, const Placement& placement) {
  for (const Placed& placed : placement) free_[placed.node] -= request.per_worker * placed.workers;
}

void FreeRoom::GiveBack(const WorkerRequest& request, const Placement& placement) {
  for (const Placed& placed : placement) free_[placed.node] += request.per_worker * placed.workers;
}

bool FreeRoom::IsAnyLeft(const WorkerRequest& request, const Placement& placement) const {
  const auto is_left = [&](const Placed& placed) {
    if (is_spoken_for_[placed.node]) return false;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (request.per_worker[kind] > 0 && free_[placed.node][kind] <= 0) return false;
    return true;
  };
  return std::any_of(placement.begin(), placement.end(), is_left);
}

std::optional<Placement> FreeRoom::For(int request, int workers, const Job& ended,
                                       const Snapshot& snapshot) const {
  const WorkerRequest& needs = snapshot.worker_requests[request];
  const auto holds = [&](const Placed& placed) { return Holds(needs, placed); };
  if (request == ended.request && workers == NumWorkers(ended.placement) &&
      std::all_of(ended.placement.begin(), ended.placement.end(), holds))
    return ended.placement;
  for (const Placed& placed : ended.placement)
    if (holds({placed.node, workers}) && Matches(snapshot.nodes[placed.node], needs))
      return Placement{{placed.node, workers}};
  return {};
}

bool FreeRoom::Holds(const WorkerRequest& request, const Placed& placed) const {
  return !is_spoken_for_[placed.node] &&
         WorkersThatFit(free_[placed.node], request.per_worker, placed.workers) == placed.workers;
}

}  // namespace renzan::cluster
