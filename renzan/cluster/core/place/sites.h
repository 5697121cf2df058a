#pragma once

// Where workers could stand if the cluster were empty and every pool at its maximum.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A node, or those that a pool could have beside its own. What is not there yet has no host, and a
// rack only if its pool has: in which one a node is, is known when it has come.
struct Site {
  const Labels* labels;
  const Resources* capacity;
  int count = 1;               // of such nodes
  const Node* node = nullptr;  // null: yet to come
  const Pool* pool = nullptr;  // of what is yet to come
};

// Nodes are bought for it and given back.
inline bool IsScaled(const Pool& pool) { return pool.min_nodes < pool.max_nodes; }

// An operator has taken the node out of use, and may give it free again.
bool MayBeRestored(const Node& node);

// Nodes that are ready, booting, cordoned or emptied by an operator (if no pool can replace them),
// and one site for what each pool can have beyond its nodes that stay; without `spot`, not what
// spot pools could buy beyond their minimum. Also a pool that is never scaled may get a lost node
// back. The sites point into the snapshot.
std::vector<Site> PossibleSites(const Snapshot& snapshot, bool spot);

// "own-0", or "a node of pool spot".
std::string NameOf(const Site& site);

}  // namespace renzan::cluster
