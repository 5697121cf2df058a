#pragma once

// Which nodes to buy for jobs that cannot start, and which to give back?

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Fills decisions.scale_out and scale_in, lowers decisions.look_again, and turns the waits of jobs
// whose place is being bought into kNodesBooting. Reads the rest: starts, waits (in the order of
// the line) and reservations as they stand at the end of a cycle.
//
// Buys what lets the first jobs in the line start that wait for room (kResources, kFragmented,
// kReserved), never part of a gang: from the pool that costs least for it, own machines first,
// within max_nodes and the budget, counting nodes that boot already. Jobs that do not checkpoint do
// not make spot nodes be bought. Gives back nodes idle for longer than the pool's idle_ms, down to
// min_nodes, dearest first, unless a start or a reservation of this cycle uses them. A scaled pool
// that has fallen below min_nodes is filled up again.
//
// Of nodes that are not there yet nobody knows the rack, unless their pool's labels say it: for a
// gang that must stay in one, those that the fullest rack lacks are bought, again if they came into
// another.
void ScalePools(const Snapshot& snapshot, Decisions& decisions);

// If it were the only job: is there room for it, or would the nodes that are missing be bought?
// Nodes beyond a pool's minimum may be kept, or given back so that the budget is there for others.
// The job need not be in the snapshot.
bool CouldHaveRoom(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
