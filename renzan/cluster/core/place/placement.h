#pragma once

// On which nodes would the workers of a gang run?

#include <optional>

#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// Whether all workers of a gang must run on one node.
bool NeedsOneHost(const WorkerRequest& request);

struct PlacementQuery {
  int request = 0;
  int min_workers = 1, max_workers = 1;
  bool checkpoints = false;  // see ClusterView::Tiers
  Room room = Room::kNow;
  bool unreserved = true;  // not on reserved resources
  // Only on these nodes, wherever the request's topology would have it; null: on any.
  const NodeSet* within = nullptr;
};

// A placement for as many workers as fit, up to the maximum; none if fewer than the minimum fit.
// Best fit: the node that holds the rest of the gang with the least room left over, or if there is
// none, the node that holds most of it. This keeps empty nodes whole for jobs that need them. With
// a topology level, the fullest domain that can hold the gang.
std::optional<Placement> FindPlacement(const ClusterView& view, const PlacementQuery& query);

}  // namespace renzan::cluster
