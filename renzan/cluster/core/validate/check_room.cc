// New workers start only on ready nodes, and pools stay within their bounds.

#include "renzan/base/counted.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

void CheckNewWorkers(CheckContext& context) {
  const auto check = [&](const Job& job, const Placement& old, const Placement& placement) {
    std::map<int, int> had = WorkersByNode(old);
    for (const Placed& placed : placement) {
      const Node& node = context.snapshot.nodes[placed.node];
      if (placed.workers > had[placed.node] && node.state != NodeState::kReady)
        context.ReportFor(job.id, "job {} gets new workers on node {}, which is not ready", job.id,
                          node.name);
    }
  };
  for (const auto& [id, start] : context.starts)
    check(*context.snapshot.Find(id), {}, start->placement);
  for (const auto& [id, resize] : context.resizes) {
    const Job& job = *context.snapshot.Find(id);
    check(job, job.placement, resize->target);
  }
}

int CountNodes(const Snapshot& snapshot, int pool, bool draining_too) {
  int count = 0;
  for (const Node& node : snapshot.nodes)
    count += node.pool == pool && node.state != NodeState::kGone &&
             (draining_too || node.state != NodeState::kDraining);
  return count;
}

void CheckScaleOut(CheckContext& context) {
  const Snapshot& snapshot = context.snapshot;
  double price = 0;
  for (const Node& node : snapshot.nodes)
    if (node.pool >= 0 && node.state != NodeState::kGone)
      price += snapshot.pools[node.pool].price_per_hour;
  bool priced = false;
  std::map<int, int> bought;
  for (const ScaleOut& out : context.decisions.scale_out) {
    if (out.pool < 0 || out.pool >= static_cast<int>(snapshot.pools.size()) || out.nodes < 1) {
      context.Report("{} nodes are bought of pool {}", out.nodes, out.pool);
      continue;
    }
    const Pool& pool = snapshot.pools[out.pool];
    if (bought.count(out.pool) > 0) context.Report("pool {} is scaled out twice", pool.name);
    bought[out.pool] += out.nodes;
    const int after = CountNodes(snapshot, out.pool, false) + bought[out.pool];
    if (after > pool.max_nodes)
      context.Report("pool {} grows to {} of {}", pool.name, Counted(after, "node"),
                     pool.max_nodes);
    price += pool.price_per_hour * out.nodes;
    priced |= pool.price_per_hour > 0;
  }
  // A cent of tolerance for rounding.
  if (priced && price > snapshot.budget_per_hour + 0.01)
    context.Report("nodes for {} an hour, the budget is {}", price, snapshot.budget_per_hour);
}

// Nodes with workers, now or by a decision of this cycle.
std::vector<bool> Needed(const CheckContext& context) {
  std::vector<bool> needed(context.snapshot.nodes.size());
  const auto mark = [&](const Placement& placement) {
    for (const Placed& placed : placement) needed[placed.node] = true;
  };
  for (const Job& job : context.snapshot.jobs) mark(job.placement), mark(job.target);
  for (const Start& start : context.decisions.starts) mark(start.placement);
  for (const Resize& resize : context.decisions.resizes) mark(resize.target);
  for (const Reservation& reservation : context.decisions.reservations) mark(reservation.placement);
  return needed;
}

void CheckScaleIn(CheckContext& context) {
  const Snapshot& snapshot = context.snapshot;
  const std::vector<bool> needed = Needed(context);
  std::map<int, int> given;  // by pool
  std::map<int, int> times;  // by node
  for (const ScaleIn& in : context.decisions.scale_in) {
    if (in.node < 0 || in.node >= static_cast<int>(snapshot.nodes.size()) ||
        snapshot.nodes[in.node].pool < 0) {
      context.Report("node {}, which is in no pool, is returned", in.node);
      continue;
    }
    const Node& node = snapshot.nodes[in.node];
    const Pool& pool = snapshot.pools[node.pool];
    if (++times[in.node] > 1) context.Report("node {} is returned twice", node.name);
    if (node.state != NodeState::kReady)
      context.Report("node {} is returned, but is not ready", node.name);
    if (needed[in.node]) context.Report("node {} is returned, but is needed", node.name);
    if (CountNodes(snapshot, node.pool, false) - ++given[node.pool] < pool.min_nodes)
      context.Report("pool {} shrinks below {}", pool.name, Counted(pool.min_nodes, "node"));
  }
}

}  // namespace

void CheckRoom(CheckContext& context) {
  CheckNewWorkers(context);
  CheckScaleOut(context);
  CheckScaleIn(context);
}

}  // namespace renzan::cluster::check
