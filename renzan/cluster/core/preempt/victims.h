#pragma once

// Whose going makes room for a gang, with the least work lost? The answer is certified: with the
// victims gone, the gang stands exactly where the answer says.

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
  Placement placement;  // of the gang, at its minimum
};

// Who may go, and what that costs.
struct VictimRules {
  std::function<bool(const Job&victim, const Quota&quota)> may_stop, may_shrink;
  std::function<double(int job, const Quota& quota)> cost;
};

// Nodes that are being booted count as there. Elastic jobs are shrunk before anyone is stopped.
// Greedy by cost, node by node, then whoever is not needed after all stays; not always the cheapest
// plan, which would be a knapsack problem. `stop_first`: jobs that go in any case (for quota).
std::optional<VictimPlan> FindVictims(const ClusterView& view, const Quota& quota,
                                      const Occupants& occupants, const Job& job,
                                      const VictimRules& rules,
                                      const std::vector<int>& stop_first = {},
                                      const NodeSet* promising = nullptr);

}  // namespace renzan::cluster
