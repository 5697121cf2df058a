#include "renzan/cluster/core/sites.h"

#include <algorithm>

namespace renzan::cluster {

std::vector<Site> PossibleSites(const Snapshot& snapshot) {
  std::vector<Site> sites;
  std::vector<int> staying(snapshot.pools.size());
  for (const Node& node : snapshot.nodes) {
    const bool stays = node.state == NodeState::kReady || node.state == NodeState::kBooting;
    // A node that an operator empties may be given free again; in a pool it counts as yet to come.
    const bool may_come_back =
        node.pool < 0 && node.state == NodeState::kDraining && node.until == kNever;
    if (stays && node.pool >= 0) ++staying[node.pool];
    if (stays || may_come_back) sites.push_back({&node.labels, &node.capacity, 1, &node});
  }
  for (size_t i = 0; i < snapshot.pools.size(); ++i) {
    const Pool& pool = snapshot.pools[i];
    if (staying[i] >= pool.max_nodes) continue;
    const int missing = pool.max_nodes - staying[i];
    sites.push_back({&pool.labels, &pool.capacity, missing, nullptr, &pool});
  }
  return sites;
}

std::string NameOf(const Site& site) {
  return site.node != nullptr ? site.node->name : "a node of pool " + site.pool->name;
}

int WorkersThatFit(const Resources& room, const Resources& per_worker, int wanted) {
  int64_t workers = wanted;
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (per_worker[kind] > 0)
      workers = std::min(workers, std::max<int64_t>(0, room[kind]) / per_worker[kind]);
  return static_cast<int>(workers);
}

}  // namespace renzan::cluster
