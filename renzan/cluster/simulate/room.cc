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

bool Room::Fits(int node, const Shape& shape) const {
  return snapshot_.nodes[node].state == NodeState::kReady && shape.per_worker.FitsIn(free_[node]) &&
         Matches(snapshot_.nodes[node], shape);
}

int Room::CountFitting(int node, const Shape& shape, int at_most) const {
  return Fits(node, shape) ? WorkersThatFit(free_[node], shape.per_worker, at_most) : 0;
}

int Room::BestNode(const Shape& shape) const {
  int best = -1;
  for (int node = 0; node < static_cast<int>(free_.size()); ++node) {
    if (!Fits(node, shape)) continue;
    const auto left = [&](int of) { return std::pair(free_[of][kGpu], free_[of][kCpu]); };
    if (best < 0 || left(node) < left(best)) best = node;
  }
  return best;
}

std::optional<Placement> Room::Place(const Shape& shape, int least, int most) {
  Placement placement;
  int workers = 0;
  for (; workers < most; ++workers) {
    const int node = BestNode(shape);
    if (node < 0) break;
    Take(node, shape.per_worker);
    placement = Sum(placement, {{node, 1}});
  }
  if (workers >= least) return placement;
  for (const Placed& placed : placement) Give(placed.node, shape.per_worker * placed.workers);
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
