#pragma once

// On which nodes would the workers of a gang stand?

#include <optional>

#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// All workers of a gang stand on one node, or it does not start.
bool NeedsOneHost(const WorkerRequest& request);

struct PlacementQuery {
  int request = 0;
  int min_workers = 1, max_workers = 1;
  bool checkpoints = false;  // see ClusterView::Tiers
  Room room = Room::kNow;
  bool firm = true;  // not on what is reserved
};

// The place of as many workers as fit, up to the maximum; none if fewer than the minimum do. Best
// fit: the node that holds the rest of the gang with the least left over; where no node does, the
// one that holds most of it. Whole free nodes stay whole for those who need them. With a required
// topology level, inside the fullest domain that can hold it.
std::optional<Placement> FindPlacement(const ClusterView& view, const PlacementQuery& query);

}  // namespace renzan::cluster
