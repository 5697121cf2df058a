#pragma once

// Which nodes to buy for jobs that cannot start, and which to return?

#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What the scheduling cycle knows of the room that stopping other jobs would make.
class PreemptionOracle {
 public:
  virtual Right RightOf(const Job& job) const = 0;
  // At least this many of the job's min_workers would have to run on bought nodes; all of them if
  // no job would be stopped for it. This many may still not suffice.
  virtual int MinWorkersOnNewNodes(const Job& job) const = 0;
  // Whether the next cycle would make room for the job, if these nodes were bought.
  virtual bool WouldFit(const Job& job, const std::vector<ScaleOut>& bought) = 0;

 protected:
  ~PreemptionOracle() = default;
};

// Runs at the end of a scheduling cycle. Fills decisions.scale_out and scale_in, lowers
// decisions.look_again, and changes the waits of jobs whose nodes are being bought to
// kNodesBooting.
//
// Buys nodes for jobs that wait for resources (kResources, kFragmented, kReserved), in
// pending-queue order, always for whole gangs: own machines first, then the cheapest pool, within
// max_nodes and the budget, counting nodes that already boot. A job for which no affordable
// purchase suffices may get the smallest one with which the next cycle stops others for the rest,
// if `oracle` is not null. Spot nodes are only bought for jobs that checkpoint. Returns nodes
// idle for longer than the pool's idle_ms, most expensive first, down to min_nodes, unless a start
// or reservation of this cycle uses them. Refills a scaled pool that has fallen below min_nodes.
//
// The rack of a node is not known before it is up, unless its pool's labels give it. For a gang
// that must run in one rack, enough nodes are bought to complete the best rack, and again if they
// came up in another one.
void ScalePools(const Snapshot& snapshot, Decisions& decisions, PreemptionOracle* oracle = nullptr);

// Whether the job would fit, or missing nodes would be bought for it, if it were the only job.
// Nodes above a pool's minimum may be kept, or returned to free their share of the budget. The job
// need not be in the snapshot.
bool CouldHaveRoom(const Snapshot& snapshot, const Job& job);

}  // namespace renzan::cluster
