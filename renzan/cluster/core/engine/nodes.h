#pragma once

// How much of nodes is used, and the nodes that are bought and returned. Pure functions of the
// snapshot.

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What workers use of the node.
Resources UsedOn(const Snapshot& snapshot, int node);

// Node `number` of a pool, as of now and ready, named "pool-number".
Node MakeNode(const Snapshot& snapshot, int pool, int number);

// A node as it will be after a transition. An index one past the end means a new node.
struct NodeChange {
  int index;
  Node node;
};

// The next node of the pool to buy: one that is gone, or else one with a new number. It boots, or
// is ready immediately if its pool has no boot time.
NodeChange NodeToBuy(const Snapshot& snapshot, int pool);

void ChangeNode(const NodeChange& change, Snapshot& snapshot);

}  // namespace renzan::cluster
