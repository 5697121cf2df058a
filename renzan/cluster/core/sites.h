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

// Nodes that are ready, booting or emptied by an operator (if no pool can replace them), and one
// site for what each pool can have beyond its nodes that stay. Also a pool that is never scaled may
// get a lost node back. The sites point into the snapshot.
std::vector<Site> PossibleSites(const Snapshot& snapshot);

// "own-0", or "a node of pool spot".
std::string NameOf(const Site& site);

// How many workers of that size `room` holds, at most `wanted`. Negative room holds none.
int WorkersThatFit(const Resources& room, const Resources& per_worker, int wanted);

}  // namespace renzan::cluster
