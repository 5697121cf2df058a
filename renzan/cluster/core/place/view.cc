#include "renzan/cluster/core/place/view.h"

#include "renzan/base/error.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/placements.h"

namespace renzan::cluster {
namespace {

int PackingKind(const Snapshot& snapshot) {
  for (const Node& node : snapshot.nodes)
    if (node.capacity.gpu() > 0) return kGpu;
  return kCpu;
}

int64_t LevelUnit(const Snapshot& snapshot, int kind) {
  int64_t largest = 0;
  for (const Node& node : snapshot.nodes) largest = std::max(largest, node.capacity[kind]);
  return (largest + LevelIndex::kLevels - 2) / (LevelIndex::kLevels - 1);
}

Resources Smaller(Resources a, const Resources& b) {
  for (int kind = 0; kind < kMaxResources; ++kind) a[kind] = std::min(a[kind], b[kind]);
  return a;
}

}  // namespace

ClusterView::ClusterView(const Snapshot& snapshot)
    : snapshot_(&snapshot),
      packing_kind_(PackingKind(snapshot)),
      nodes_(snapshot.nodes.size()),
      usable_(static_cast<int>(snapshot.nodes.size())),
      now_index_(num_nodes(), LevelUnit(snapshot, packing_kind_)),
      future_index_(now_index_) {
  CHECK(snapshot.resource_names.size() <= kMaxResources);
  for (int node = 0; node < num_nodes(); ++node) {
    const Node& facts = snapshot.nodes[node];
    nodes_[node] = {facts.capacity, facts.capacity, facts.capacity};
    if (TakesWork(facts.state)) usable_.Add(node);
    if (facts.state == NodeState::kReady) total_ += facts.capacity;
    if (facts.state == NodeState::kBooting) nodes_[node].now = {};
  }
  for (size_t at = 0; at < snapshot.jobs.size(); ++at) {
    if (snapshot.jobs[at].state == JobState::kPending) continue;
    holders_.push_back(static_cast<int>(at));
    Hold(snapshot.jobs[at]);
  }
  for (int node = 0; node < num_nodes(); ++node) {
    if (snapshot.nodes[node].state == NodeState::kReady) free_now_ += nodes_[node].now;
    if (usable_.Has(node)) free_future_ += nodes_[node].future[packing_kind_];
    Reindex(node);
  }
}

void ClusterView::Hold(const Job& job) {
  const Resources& each = snapshot_->worker_requests[job.request].per_worker;
  const bool leaves = job.state == JobState::kStopping;
  const bool resizes = job.state == JobState::kResizing;
  for (const Placed& placed : job.placement) nodes_[placed.node].now -= each * placed.workers;
  if (resizes)
    for (const Placed& placed : Difference(job.target, job.placement))
      nodes_[placed.node].now -= each * placed.workers;
  if (leaves) return;
  for (const Placed& placed : resizes ? job.target : job.placement) {
    nodes_[placed.node].future -= each * placed.workers;
    if (!job.backfilled) nodes_[placed.node].unreserved -= each * placed.workers;
  }
}

void ClusterView::Reindex(int node) {
  now_index_.Set(node, Free(node, Room::kNow)[packing_kind_]);
  future_index_.Set(node, nodes_[node].future[packing_kind_]);
}

Resources ClusterView::Free(int node, Room room) const {
  const NodeRoom& free = nodes_[node];
  return room == Room::kNow ? Smaller(free.now, free.future) : free.future;
}

int ClusterView::Count(const WorkerRequest& request, int node, Room room, bool unreserved) const {
  Resources free = Free(node, room);
  if (unreserved) free = Smaller(free, nodes_[node].unreserved);
  return WorkersThatFit(free, request.per_worker, std::numeric_limits<int>::max());
}

const std::vector<NodeSet>& ClusterView::Tiers(int request, bool checkpoints) const {
  const auto [at, is_new] = tiers_.try_emplace({request, checkpoints});
  if (!is_new) return at->second;
  const WorkerRequest& wanted = snapshot_->worker_requests[request];
  std::map<std::tuple<int, bool, bool>, NodeSet> by_rank;
  for (int node = usable_.Next(0); node >= 0; node = usable_.Next(node + 1)) {
    const Node& facts = snapshot_->nodes[node];
    if (!Matches(facts, wanted) || !wanted.per_worker.FitsIn(facts.capacity)) continue;
    const bool paid = facts.pool >= 0 && snapshot_->pools[facts.pool].price_per_hour > 0;
    const std::tuple rank(-CountPreferred(facts, wanted), paid, facts.spot != checkpoints);
    by_rank.try_emplace(rank, NodeSet(num_nodes())).first->second.Add(node);
  }
  for (auto& [rank, nodes] : by_rank) at->second.push_back(std::move(nodes));
  return at->second;
}

const std::vector<NodeSet>& ClusterView::Domains(const std::string& level) const {
  const auto [at, is_new] = domains_.try_emplace(level);
  if (!is_new) return at->second;
  const std::vector<int> domains = DomainsAt(*snapshot_, level);
  for (int node = 0; node < num_nodes(); ++node) {
    if (domains[node] < 0) continue;
    at->second.resize(std::max<size_t>(at->second.size(), domains[node] + 1), NodeSet(num_nodes()));
    at->second[domains[node]].Add(node);
  }
  return at->second;
}

void ClusterView::TakeNow(const Resources& per_worker, const Placement& placement,
                          bool backfilled) {
  for (const Placed& placed : placement) {
    NodeRoom& free = nodes_[placed.node];
    const Resources amount = per_worker * placed.workers;
    free.now -= amount;
    free_now_ -= amount;
    free_future_ -= amount[packing_kind_];
    free.future -= amount;
    if (!backfilled) free.unreserved -= amount;
    Reindex(placed.node);
  }
}

void ClusterView::TakeFuture(const Resources& per_worker, const Placement& placement) {
  for (const Placed& placed : placement) {
    nodes_[placed.node].future -= per_worker * placed.workers;
    nodes_[placed.node].unreserved -= per_worker * placed.workers;
    free_future_ -= per_worker[packing_kind_] * placed.workers;
    Reindex(placed.node);
  }
}

void ClusterView::Release(const Resources& per_worker, const Placement& placement,
                          bool backfilled) {
  for (const Placed& placed : placement) {
    nodes_[placed.node].future += per_worker * placed.workers;
    if (usable_.Has(placed.node)) free_future_ += per_worker[packing_kind_] * placed.workers;
    if (!backfilled) nodes_[placed.node].unreserved += per_worker * placed.workers;
    Reindex(placed.node);
  }
}

void ClusterView::Reserve(const Resources& per_worker, const Placement& placement) {
  for (const Placed& placed : placement)
    nodes_[placed.node].unreserved -= per_worker * placed.workers;
}

void ClusterView::Unreserve(const Resources& per_worker, const Placement& placement) {
  for (const Placed& placed : placement)
    nodes_[placed.node].unreserved += per_worker * placed.workers;
}

}  // namespace renzan::cluster
