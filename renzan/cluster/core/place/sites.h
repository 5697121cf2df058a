#pragma once

// Where workers could run if the cluster were empty and every pool at its maximum.

#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// An existing node, or the further nodes that a pool could have. The rack of a future node is
// unknown until it is up, unless its pool's labels give it.
struct Site {
  const Labels* labels;
  const Resources* capacity;
  int count = 1;               // number of such nodes
  const Node* node = nullptr;  // null: future nodes
  const Pool* pool = nullptr;  // of future nodes
};

// Whether nodes of the pool are bought and returned.
inline bool IsScaled(const Pool& pool) { return pool.min_nodes < pool.max_nodes; }

// Whether an operator has taken the node out of service, and can restore it.
bool MayBeRestored(const Node& node);

// Whether the node has failed or gone away, and comes back only if an operator restores it: none is
// bought in its place.
bool IsMissed(const Snapshot& snapshot, const Node& node);

// Nodes that are ready, booting, cordoned, or drained by an operator (if no pool can replace them),
// and one site per pool for the nodes it can have in addition. Without `spot`, spot pools count
// only up to their minimum. The nodes of a fixed-size pool come back under their names. The sites
// point into the snapshot.
std::vector<Site> PossibleSites(const Snapshot& snapshot, bool spot);

// Whether workers may run there: labels, and nodes that the request excludes.
bool Matches(const Site& site, const WorkerRequest& request);

// "own-0", or "a node of pool spot".
std::string NameOf(const Site& site);

}  // namespace renzan::cluster
