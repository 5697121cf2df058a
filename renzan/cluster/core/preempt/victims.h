#pragma once

// Which jobs must stop or shrink to make room for a gang, with the least work lost? The result
// includes the gang's placement once the victims have stopped.

#include <functional>
#include <optional>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

struct Victim {
  int job;           // in Snapshot::jobs
  Placement leaves;  // all of its workers: it is stopped; fewer: it is shrunk
  bool stopped;
};

struct VictimPlan {
  std::vector<Victim> victims;
  Placement placement;  // of the gang's minimum
};

// Which jobs may be victims, and what each costs. Without `may_shrink` none is shrunk.
struct VictimRules {
  std::function<bool(const Job&victim, const Quota&quota)> may_stop, may_shrink;
  std::function<double(int job, const Quota& quota)> cost;
};

// Where possible victims run: all of them, and those that can be shrunk.
struct VictimNodes {
  NodeSet all, shrinkable;
};

// Booting nodes count as ready. Elastic jobs are shrunk before any job is stopped. Greedy by cost,
// node by node, then drops victims that turn out not to be needed. The cheapest plan would be a
// knapsack problem. `stop_first`: jobs that must stop in any case (for quota). `where`: the
// nodes to search besides those with room, null for all.
std::optional<VictimPlan> FindVictims(const ClusterView& view, const Quota& quota,
                                      const Occupants& occupants, const Job& job,
                                      const VictimRules& rules,
                                      const std::vector<int>& stop_first = {},
                                      const VictimNodes* where = nullptr);

}  // namespace renzan::cluster
