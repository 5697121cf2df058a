#include "renzan/cluster/kubernetes/controller/pool_facts.h"

#include <algorithm>

namespace renzan::cluster::kubernetes {

TimeMs OverdueMs(const Pool& pool) { return 3 * pool.boot_ms + 10 * kMinute; }

std::map<std::string, PoolMembers> MembersOfPools(const Inventory& inventory,
                                                  const Snapshot& snapshot) {
  std::map<std::string, PoolMembers> pools;
  for (const auto& [name, node] : inventory.known()) {
    const auto label = node.labels.find(kPoolLabel);
    if (label == node.labels.end()) continue;
    PoolMembers& members = pools[label->second];
    const Node& mine = snapshot.nodes[inventory.Find(name)];
    ++members.nodes;
    members.lost += mine.state == NodeState::kGone;
    if (node.returning) members.returning.push_back(name);
    if (mine.state == NodeState::kReady) members.takes_work.push_back(inventory.Find(name));
    // The resources of a node that became ready in this turn are determined in the course of it.
    if (mine.state != NodeState::kReady || mine.capacity == Resources{}) continue;
    ++members.ready;
    for (int kind = 0; kind < kMaxResources; ++kind)
      members.most[kind] = std::max(members.most[kind], mine.capacity[kind]);
  }
  return pools;
}

std::vector<TimeMs> StillBooting(std::vector<TimeMs> since, int replicas, int nodes, TimeMs now) {
  const auto booting = static_cast<size_t>(std::max(0, replicas - nodes));
  if (since.size() > booting)
    since.erase(since.begin(), since.end() - static_cast<std::ptrdiff_t>(booting));
  since.resize(booting, now);
  return since;
}

int CountOverdue(const NodePool& pool, const std::vector<TimeMs>& booting_since, TimeMs now) {
  return static_cast<int>(
      std::count_if(booting_since.begin(), booting_since.end(),
                    [&](TimeMs since) { return since + OverdueMs(pool.pool) <= now; }));
}

Pool PoolFacts(const NodePool& pool, const PoolMembers& members, bool is_scaled, int overdue,
               Inventory& inventory, Snapshot& snapshot) {
  Pool facts = pool.pool;
  facts.capacity = CapacityFrom(pool.capacity, snapshot);
  // A machine offers less than was stated, or pods of others run on each of them.
  if (members.ready > 0)
    for (int kind = 0; kind < kMaxResources; ++kind)
      facts.capacity[kind] = std::min(facts.capacity[kind], members.most[kind]);
  facts.labels[kPoolLabel] = pool.name;
  facts.labels = inventory.LabelsOf("", facts.labels, pool.taints);
  // Useless machines are paid for, and count as well.
  const int usable = std::max(0, facts.max_nodes - members.lost - overdue);
  facts.max_nodes = is_scaled && pool.invalid.empty() ? usable : 0;
  facts.min_nodes = std::min(facts.min_nodes, facts.max_nodes);
  return facts;
}

double BudgetLeft(double per_hour, const std::map<std::string, PoolMembers>& members,
                  const Snapshot& snapshot) {
  for (const Pool& pool : snapshot.pools)
    if (const auto of = members.find(pool.name); of != members.end())
      per_hour -= of->second.lost * pool.price_per_hour;
  return std::max(0.0, per_hour);
}

}  // namespace renzan::cluster::kubernetes
