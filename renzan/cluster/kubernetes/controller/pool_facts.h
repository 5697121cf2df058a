#pragma once

// What a NodePool means for the scheduler, from its object, the nodes that carry its label and what
// they offer: for the controller, for clients that see the cluster as it does, and for checks at
// admission. Pure, except for what the inventory learns about labels.

#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"

namespace renzan::cluster::kubernetes {

// A machine that has not come after this time no longer counts.
TimeMs OverdueMs(const Pool& pool);

struct PoolMembers {
  int nodes = 0, ready = 0, lost = 0;
  std::vector<int> takes_work;  // nodes of the snapshot
  Resources most;               // of a ready node, by kind
  std::vector<std::string> returning;
};
// The known nodes, by pool.
std::map<std::string, PoolMembers> MembersOfPools(const Inventory& inventory,
                                                  const Snapshot& snapshot);

// Of the machines bought at these times, those that are not nodes yet: the earliest have come
// first. Machines without a known time count as bought now.
std::vector<TimeMs> StillBooting(std::vector<TimeMs> since, int replicas, int nodes, TimeMs now);
int CountOverdue(const NodePool& pool, const std::vector<TimeMs>& booting_since, TimeMs now);

// `is_scaled`: whether nodes can be bought and returned.
Pool PoolFacts(const NodePool& pool, const PoolMembers& members, bool is_scaled, int overdue,
               Inventory& inventory, Snapshot& snapshot);

// The budget left. Nodes that do not report cost as much as others.
double BudgetLeft(double per_hour, const std::map<std::string, PoolMembers>& members,
                  const Snapshot& snapshot);

}  // namespace renzan::cluster::kubernetes
