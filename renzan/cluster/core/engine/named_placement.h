#pragma once

// Where workers are, by the names of nodes: what is recorded, because a snapshot's positions are
// those of one moment. Plain data and pure functions.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Workers on one node. `devices` has the devices of each worker, in order; it is empty in a target,
// because devices are assigned at the start, and where others assign them.
struct NodeShare {
  std::string node;
  int workers = 0;
  std::vector<std::vector<int>> devices;
  bool operator==(const NodeShare&) const = default;
};
using NamedPlacement = std::vector<NodeShare>;

NamedPlacement WithNames(const Snapshot& snapshot, const Placement& placement);

int NumWorkers(const NamedPlacement& placement);

// "own-0 (2 workers), own-1 (1 worker)".
std::string Describe(const NamedPlacement& placement);

}  // namespace renzan::cluster
