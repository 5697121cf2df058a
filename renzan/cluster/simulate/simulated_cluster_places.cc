// Nodes that come and go, what runs on them, and partially placed gangs.

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/simulate/room.h"
#include "renzan/cluster/simulate/simulated_cluster.h"

namespace renzan::cluster::simulate {

void SimulatedCluster::UpdateFree(int node) {
  const Node& there = snapshot_.nodes[node];
  idle_gpus_ -= free_[node].gpu();
  free_[node] = there.state == NodeState::kReady ? there.capacity - used_[node] : Resources{};
  idle_gpus_ += free_[node].gpu();
}

void SimulatedCluster::Occupy(const Job& job, const Placement& placement, int sign) {
  const Resources& per_worker = snapshot_.worker_requests[job.request].per_worker;
  for (const Placed& placed : placement) {
    Node& node = snapshot_.nodes[placed.node];
    used_[placed.node] += per_worker * (sign * placed.workers);
    workers_on_[placed.node] += sign * placed.workers;
    busy_gpus_ += per_worker.gpu() * sign * placed.workers;
    if (sign > 0)
      CHECK_MSG(used_[placed.node].FitsIn(node.capacity), "job {} does not fit on {}", job.id,
                node.name);
    if (workers_on_[placed.node] == 0) node.idle_since = now();
    UpdateFree(placed.node);
  }
}

std::optional<Placement> SimulatedCluster::Hold(const simulate::Hold& hold) {
  const Job& job = Get(hold.job);
  CHECK_MSG(job.state == JobState::kPending, "job {} is placed, but is not pending", job.id);
  Placement& held = held_[hold.job];
  CloseHeld(life(hold.job), held);
  Occupy(job, {{hold.node, hold.workers}}, 1);
  held = Sum(held, {{hold.node, hold.workers}});
  CHECK(NumWorkers(held) <= job.max_workers);
  if (NumWorkers(held) < job.max_workers) return std::nullopt;
  Placement all = held;
  ReleaseHeld(hold.job);
  return all;
}

void SimulatedCluster::Evict(const simulate::Evict& evict) {
  const Job& job = Get(evict.job);
  JobLife& its = life(evict.job);
  const Placement evicted = {{evict.node, evict.workers}};
  if (job.state != JobState::kPending) {
    if (job.state == JobState::kRunning && its.keeps.empty()) its.keeps = job.placement;
    its.keeps = Difference(its.keeps, evicted);
    return;
  }
  Placement& held = held_[evict.job];
  CloseHeld(its, held);
  Occupy(job, evicted, -1);
  held = Difference(held, evicted);
  if (held.empty()) held_.erase(evict.job);
}

void SimulatedCluster::ReleaseHeld(JobId id) {
  const auto held = held_.find(id);
  if (held == held_.end()) return;
  CloseHeld(life(id), held->second);
  Occupy(Get(id), held->second, -1);
  held_.erase(held);
}

void SimulatedCluster::CloseHeld(JobLife& life, const Placement& held) {
  if (!held.empty()) life.record.overhead += (now() - life.held_since) * NumWorkers(held);
  life.held_since = now();
}

void SimulatedCluster::Count(const Node& node, int sign) {
  if (node.pool >= 0 && node.state != NodeState::kGone)
    price_per_hour_ += sign * snapshot_.pools[node.pool].price_per_hour;
  if (IsThere(node.state)) present_gpus_ += sign * node.capacity.gpu();
}

void SimulatedCluster::BeginNodeChange(int node) {
  if (static_cast<size_t>(node) < used_.size()) {
    Count(snapshot_.nodes[node], -1);
    return;
  }
  used_.emplace_back();
  free_.emplace_back();
  workers_on_.push_back(0);
}

void SimulatedCluster::FinishNodeChange(int node) {
  Count(snapshot_.nodes[node], 1);
  UpdateFree(node);
}

void SimulatedCluster::SetNode(int node, NodeState state, TimeMs until) {
  BeginNodeChange(node);
  Node& there = snapshot_.nodes[node];
  there.state = state;
  there.until = until;
  if (workers_on_[node] == 0) there.idle_since = now();
  FinishNodeChange(node);
}

void SimulatedCluster::LoseTarget(JobId id) {
  const Job& job = Get(id);
  Occupy(job, Difference(HeldBy(job), job.placement), -1);
}

void SimulatedCluster::FailNode(int node) {
  for (const auto& [job, placement] : std::map(held_))
    for (const Placed& placed : placement)
      if (placed.node == node) Evict({job, node, placed.workers});
  CHECK(workers_on_[node] == 0);
  SetNode(node, NodeState::kGone, kNever);
}

}  // namespace renzan::cluster::simulate
