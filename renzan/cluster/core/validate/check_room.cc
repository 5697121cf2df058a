// New workers stand only where workers may, and pools stay within their bounds.

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

void CheckNewWorkers(Pass& pass) {
  const auto check = [&](const Job& job, const Placement& old, const Placement& placement) {
    std::map<int, int> had = WorkersByNode(old);
    for (const Placed& placed : placement) {
      const Node& node = pass.snapshot.nodes[placed.node];
      if (placed.workers > had[placed.node] && node.state != NodeState::kReady)
        pass.Report("job {} gets new workers on node {}, which is not ready", job.id, node.name);
    }
  };
  for (const auto& [id, start] : pass.starts) check(*pass.snapshot.Find(id), {}, start->placement);
  for (const auto& [id, resize] : pass.resizes) {
    const Job& job = *pass.snapshot.Find(id);
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

void CheckScaleOut(Pass& pass) {
  const Snapshot& snapshot = pass.snapshot;
  double price = 0;
  for (const Node& node : snapshot.nodes)
    if (node.pool >= 0 && node.state != NodeState::kGone)
      price += snapshot.pools[node.pool].price_per_hour;
  bool priced = false;
  std::map<int, int> bought;
  for (const ScaleOut& out : pass.decisions.scale_out) {
    if (out.pool < 0 || out.pool >= static_cast<int>(snapshot.pools.size()) || out.nodes < 1) {
      pass.Report("{} nodes are bought of pool {}", out.nodes, out.pool);
      continue;
    }
    const Pool& pool = snapshot.pools[out.pool];
    if (bought.count(out.pool) > 0) pass.Report("pool {} is scaled out twice", pool.name);
    bought[out.pool] += out.nodes;
    const int after = LivingNodes(snapshot, out.pool, false) + bought[out.pool];
    if (after > pool.max_nodes)
      pass.Report("pool {} grows to {} nodes of {}", pool.name, after, pool.max_nodes);
    price += pool.price_per_hour * out.nodes;
    priced |= pool.price_per_hour > 0;
  }
  // A cent of slack for the rounding of a sum.
  if (priced && price > snapshot.budget_per_hour + 0.01)
    pass.Report("nodes for {} an hour, the budget is {}", price, snapshot.budget_per_hour);
}

// Nodes with workers, now or by a decision of this pass.
std::vector<bool> Needed(const Pass& pass) {
  std::vector<bool> needed(pass.snapshot.nodes.size());
  const auto mark = [&](const Placement& placement) {
    for (const Placed& placed : placement) needed[placed.node] = true;
  };
  for (const Job& job : pass.snapshot.jobs) mark(job.placement), mark(job.target);
  for (const Start& start : pass.decisions.starts) mark(start.placement);
  for (const Resize& resize : pass.decisions.resizes) mark(resize.target);
  for (const Reservation& reservation : pass.decisions.reservations) mark(reservation.placement);
  return needed;
}

void CheckScaleIn(Pass& pass) {
  const Snapshot& snapshot = pass.snapshot;
  const std::vector<bool> needed = Needed(pass);
  std::map<int, int> given;  // by pool
  std::map<int, int> times;  // by node
  for (const ScaleIn& in : pass.decisions.scale_in) {
    if (in.node < 0 || in.node >= static_cast<int>(snapshot.nodes.size()) ||
        snapshot.nodes[in.node].pool < 0) {
      pass.Report("node {} of no pool is given back", in.node);
      continue;
    }
    const Node& node = snapshot.nodes[in.node];
    const Pool& pool = snapshot.pools[node.pool];
    if (++times[in.node] > 1) pass.Report("node {} is given back twice", node.name);
    if (node.state != NodeState::kReady)
      pass.Report("node {} is given back and is not ready", node.name);
    if (needed[in.node]) pass.Report("node {} is given back and is needed", node.name);
    if (LivingNodes(snapshot, node.pool, false) - ++given[node.pool] < pool.min_nodes)
      pass.Report("pool {} shrinks below {} nodes", pool.name, pool.min_nodes);
  }
}

}  // namespace

void CheckRoom(Pass& pass) {
  CheckNewWorkers(pass);
  CheckScaleOut(pass);
  CheckScaleIn(pass);
}

}  // namespace renzan::cluster::check
