// New workers stand only where workers may, and pools stay within their bounds.

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

void CheckNewWorkers(Cycle& cycle) {
  const auto check = [&](const Job& job, const Placement& old, const Placement& placement) {
    std::map<int, int> had = WorkersByNode(old);
    for (const Placed& placed : placement) {
      const Node& node = cycle.snapshot.nodes[placed.node];
      if (placed.workers > had[placed.node] && node.state != NodeState::kReady)
        cycle.Report("job {} gets new workers on node {}, which is not ready", job.id, node.name);
    }
  };
  for (const auto& [id, start] : cycle.starts)
    check(*cycle.snapshot.Find(id), {}, start->placement);
  for (const auto& [id, resize] : cycle.resizes) {
    const Job& job = *cycle.snapshot.Find(id);
    check(job, job.placement, resize->target);
  }
}

int LivingNodes(const Snapshot& snapshot, int pool, bool draining_too) {
  int living = 0;
  for (const Node& node : snapshot.nodes)
    living += node.pool == pool && node.state != NodeState::kGone &&
              (draining_too || node.state != NodeState::kDraining);
  return living;
}

void CheckScaleOut(Cycle& cycle) {
  const Snapshot& snapshot = cycle.snapshot;
  double price = 0;
  for (const Node& node : snapshot.nodes)
    if (node.pool >= 0 && node.state != NodeState::kGone)
      price += snapshot.pools[node.pool].price_per_hour;
  bool priced = false;
  std::map<int, int> bought;
  for (const ScaleOut& out : cycle.decisions.scale_out) {
    if (out.pool < 0 || out.pool >= static_cast<int>(snapshot.pools.size()) || out.nodes < 1) {
      cycle.Report("{} nodes are bought of pool {}", out.nodes, out.pool);
      continue;
    }
    const Pool& pool = snapshot.pools[out.pool];
    if (bought.count(out.pool) > 0) cycle.Report("pool {} is scaled out twice", pool.name);
    bought[out.pool] += out.nodes;
    const int after = LivingNodes(snapshot, out.pool, false) + bought[out.pool];
    if (after > pool.max_nodes)
      cycle.Report("pool {} grows to {} nodes of {}", pool.name, after, pool.max_nodes);
    price += pool.price_per_hour * out.nodes;
    priced |= pool.price_per_hour > 0;
  }
  // A cent of slack for the rounding of a sum.
  if (priced && price > snapshot.budget_per_hour + 0.01)
    cycle.Report("nodes for {} an hour, the budget is {}", price, snapshot.budget_per_hour);
}

// Nodes with workers, now or by a decision of this cycle.
std::vector<bool> Needed(const Cycle& cycle) {
  std::vector<bool> needed(cycle.snapshot.nodes.size());
  const auto mark = [&](const Placement& placement) {
    for (const Placed& placed : placement) needed[placed.node] = true;
  };
  for (const Job& job : cycle.snapshot.jobs) mark(job.placement), mark(job.target);
  for (const Start& start : cycle.decisions.starts) mark(start.placement);
  for (const Resize& resize : cycle.decisions.resizes) mark(resize.target);
  for (const Reservation& reservation : cycle.decisions.reservations) mark(reservation.placement);
  return needed;
}

void CheckScaleIn(Cycle& cycle) {
  const Snapshot& snapshot = cycle.snapshot;
  const std::vector<bool> needed = Needed(cycle);
  std::map<int, int> given;  // by pool
  std::map<int, int> times;  // by node
  for (const ScaleIn& in : cycle.decisions.scale_in) {
    if (in.node < 0 || in.node >= static_cast<int>(snapshot.nodes.size()) ||
        snapshot.nodes[in.node].pool < 0) {
      cycle.Report("node {} of no pool is given back", in.node);
      continue;
    }
    const Node& node = snapshot.nodes[in.node];
    const Pool& pool = snapshot.pools[node.pool];
    if (++times[in.node] > 1) cycle.Report("node {} is given back twice", node.name);
    if (node.state != NodeState::kReady)
      cycle.Report("node {} is given back and is not ready", node.name);
    if (needed[in.node]) cycle.Report("node {} is given back and is needed", node.name);
    if (LivingNodes(snapshot, node.pool, false) - ++given[node.pool] < pool.min_nodes)
      cycle.Report("pool {} shrinks below {} nodes", pool.name, pool.min_nodes);
  }
}

}  // namespace

void CheckRoom(Cycle& cycle) {
  CheckNewWorkers(cycle);
  CheckScaleOut(cycle);
  CheckScaleIn(cycle);
}

}  // namespace renzan::cluster::check
