#include "renzan/cluster/core/place/sites.h"

#include <algorithm>

#include "renzan/cluster/core/labels.h"

namespace renzan::cluster {

bool MayBeRestored(const Node& node) {
  return node.state == NodeState::kCordoned ||
         (node.state == NodeState::kDraining && node.until == kNever);
}

bool IsMissed(const Snapshot& snapshot, const Node& node) {
  if (node.state != NodeState::kGone || node.pool < 0) return false;
  const Pool& pool = snapshot.pools[node.pool];
  // On Kubernetes, pools of a fixed size are empty here: a machine that is lost does not return.
  return !IsScaled(pool) && pool.max_nodes > 0;
}

std::vector<Site> PossibleSites(const Snapshot& snapshot, bool spot) {
  std::vector<Site> sites;
  std::vector<int> staying(snapshot.pools.size());
  for (const Node& node : snapshot.nodes) {
    const bool stays = TakesWork(node.state) || node.state == NodeState::kCordoned;
    // A node of a scaled pool is counted among those that the pool can still have.
    const bool may_come_back =
        MayBeRestored(node) && (node.pool < 0 || !IsScaled(snapshot.pools[node.pool]));
    if (!stays && !may_come_back) continue;
    if (node.pool >= 0) ++staying[node.pool];
    sites.push_back({&node.labels, &node.capacity, 1, &node});
  }
  for (const Node& node : snapshot.nodes) {
    const bool goes_away = node.state == NodeState::kDraining && node.until != kNever;
    if (!IsMissed(snapshot, node) && !goes_away) continue;
    if (node.pool < 0 || IsScaled(snapshot.pools[node.pool])) continue;
    const Pool& pool = snapshot.pools[node.pool];
    if (staying[node.pool] >= pool.max_nodes) continue;
    ++staying[node.pool];
    sites.push_back({&node.labels, &pool.capacity, 1, &node});
  }
  for (size_t i = 0; i < snapshot.pools.size(); ++i) {
    const Pool& pool = snapshot.pools[i];
    const int most = pool.spot && !spot ? pool.min_nodes : pool.max_nodes;
    if (staying[i] < most)
      sites.push_back({&pool.labels, &pool.capacity, most - staying[i], nullptr, &pool});
  }
  return sites;
}

bool Matches(const Site& site, const WorkerRequest& request) {
  return site.node != nullptr ? Matches(*site.node, request)
                              : HasAll(*site.labels, request.required);
}

std::string NameOf(const Site& site) {
  return site.node != nullptr ? site.node->name : "a node of pool " + site.pool->name;
}

}  // namespace renzan::cluster
