#include "renzan/cluster/core/engine/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "renzan/base/error.h"

namespace renzan::cluster {

Resources UsedOn(const Snapshot& snapshot, int node) {
  Resources used;
  for (const Job& job : snapshot.jobs)
    for (const Placed& placed : job.placement)
      if (placed.node == node)
        used += snapshot.worker_requests[job.request].per_worker * placed.workers;
  return used;
}

Node MakeNode(const Snapshot& snapshot, int pool, int number) {
  const Pool& from = snapshot.pools.at(pool);
  Node node{.name = fmt::format("{}-{}", from.name, number),
            .pool = pool,
            .capacity = from.capacity,
            .labels = from.labels,
            .idle_since = snapshot.now,
            .spot = from.spot};
  for (const auto& [level, domains] : from.domains)
    node.labels[level] = fmt::format("{}-{}-{}", from.name, level, number % domains);
  return node;
}

NodeChange NodeToBuy(const Snapshot& snapshot, int pool) {
  const auto gone = std::find_if(
      snapshot.nodes.begin(), snapshot.nodes.end(),
      [&](const Node& node) { return node.pool == pool && node.state == NodeState::kGone; });
  NodeChange change{static_cast<int>(gone - snapshot.nodes.begin()), {}};
  if (gone != snapshot.nodes.end()) {
    change.node = *gone;
  } else {
    // Not just the next number: under an earlier configuration the pool may have had others.
    std::set<std::string> names;
    for (const Node& node : snapshot.nodes) names.insert(node.name);
    change.node = MakeNode(snapshot, pool, 0);
    for (int number = 1; names.contains(change.node.name); ++number)
      change.node = MakeNode(snapshot, pool, number);
  }
  const TimeMs boot = snapshot.pools[pool].boot_ms;
  change.node.state = boot > 0 ? NodeState::kBooting : NodeState::kReady;
  change.node.until = boot > 0 ? snapshot.now + boot : kNever;
  change.node.idle_since = snapshot.now;
  return change;
}

void ChangeNode(const NodeChange& change, Snapshot& snapshot) {
  const auto index = static_cast<size_t>(change.index);
  CHECK(index <= snapshot.nodes.size());
  if (index == snapshot.nodes.size())
    snapshot.nodes.push_back(change.node);
  else
    snapshot.nodes[index] = change.node;
}

}  // namespace renzan::cluster
