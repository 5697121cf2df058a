#include "renzan/cluster/simulate/room.h"

#include <algorithm>
#include <utility>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/placements.h"

namespace renzan::cluster::simulate {

Room::Room(const Snapshot& snapshot, std::span<const Resources> free)
    : snapshot_(snapshot), free_(free.begin(), free.end()) {}

void Room::LimitTo(int node, const Room& other) {
  for (int kind = 0; kind < kMaxResources; ++kind)
    free_[node][kind] = std::min(free_[node][kind], other.free_[node][kind]);
}

bool Room::Fits(int node, const WorkerRequest& request) const {
  return snapshot_.nodes[node].state == NodeState::kReady &&
         request.per_worker.FitsIn(free_[node]) && Matches(snapshot_.nodes[node], request);
}

int Room::CountFitting(int node, const WorkerRequest& request, int at_most) const {
  return Fits(node, request) ? WorkersThatFit(free_[node], request.per_worker, at_most) : 0;
}

int Room::BestNode(const WorkerRequest& request) const {
  int best = -1;
  for (int node = 0; node < static_cast<int>(free_.size()); ++node) {
    if (!Fits(node, request)) continue;
    const auto left = [&](int of) { return std::pair(free_[of][kGpu], free_[of][kCpu]); };
    if (best < 0 || left(node) < left(best)) best = node;
  }
  return best;
}

std::optional<Placement> Room::Place(const WorkerRequest& request, int least, int most) {
  Placement placement;
  int workers = 0;
  for (; workers < most; ++workers) {
    const int node = BestNode(request);
    if (node < 0) break;
    Take(node, request.per_worker);
    placement = Sum(placement, {{node, 1}});
  }
  if (workers >= least) return placement;
  for (const Placed& placed : placement) Give(placed.node, request.per_worker * placed.workers);
  return std::nullopt;
}

std::vector<Stop> StopOnLeavingNodes(const Snapshot& snapshot) {
  std::vector<Stop> stops;
  const auto leaving = [&](const Placed& placed) {
    return snapshot.nodes[placed.node].state == NodeState::kDraining;
  };
  if (std::none_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                   [](const Node& node) { return node.state == NodeState::kDraining; }))
    return stops;
  for (const Job& job : snapshot.jobs)
    if (job.state == JobState::kRunning && job.checkpoints &&
        std::any_of(job.placement.begin(), job.placement.end(), leaving))
      stops.push_back({job.id, StopReason::kNodeLeaving});
  return stops;
}

}  // namespace renzan::cluster::simulate
