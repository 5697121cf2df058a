#include "renzan/cluster/core/validate/check.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/labels.h"

namespace renzan::cluster::check {

std::string FormFault(const Snapshot& snapshot, const Placement& placement) {
  for (size_t i = 0; i < placement.size(); ++i) {
    const Placed& placed = placement[i];
    if (placed.node < 0 || placed.node >= static_cast<int>(snapshot.nodes.size()))
      return fmt::format("node {} does not exist", placed.node);
    if (placed.workers < 1)
      return fmt::format("{} on node {}", Counted(placed.workers, "worker"), placed.node);
    if (i > 0 && placement[i - 1].node >= placed.node) return "nodes are not in order, each once";
  }
  return "";
}

std::string PlacementFault(const Snapshot& snapshot, const Job& job, const Placement& placement,
                           const Placement& had) {
  if (const std::string fault = FormFault(snapshot, placement); !fault.empty()) return fault;
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  std::map<int, int> had_on = WorkersByNode(had);
  bool any_new = false;
  for (const Placed& placed : placement) {
    if (placed.workers <= had_on[placed.node]) continue;
    any_new = true;
    if (!HasAll(snapshot.nodes[placed.node].labels, request.required))
      return fmt::format("node {} lacks a required label", snapshot.nodes[placed.node].name);
  }
  if (!request.topology_required || !any_new) return "";
  const std::vector<int> domains = DomainsAt(snapshot, request.topology_level);
  for (const Placed& placed : placement)
    if (domains[placed.node] < 0 || domains[placed.node] != domains[placement[0].node])
      return fmt::format("its workers are not in one {}", request.topology_level);
  return "";
}

namespace {

void Add(Held& held, const Snapshot& snapshot, const Job& job, const Placement& placement) {
  for (const Placed& placed : placement) held[placed.node] += Of(snapshot, job, placed.workers);
}

template <typename Matches>
bool IsOnAny(const Job& job, Matches matches) {
  const auto on = [&](const Placed& placed) { return matches(placed.node); };
  return std::any_of(job.placement.begin(), job.placement.end(), on) ||
         std::any_of(job.target.begin(), job.target.end(), on);
}

void AddStarts(Held& held, const CheckContext& context) {
  for (const Start& start : context.decisions.starts)
    Add(held, context.snapshot, *context.snapshot.Find(start.job), start.placement);
}

}  // namespace

Held HeldNow(const Snapshot& snapshot) {
  Held held(snapshot.nodes.size());
  for (const Job& job : snapshot.jobs) Add(held, snapshot, job, HeldBy(job));
  return held;
}

Held HeldAfterDecisions(const CheckContext& context) {
  Held held(context.snapshot.nodes.size());
  for (const Job& job : context.snapshot.jobs) {
    const auto resize = context.resizes.find(job.id);
    Add(held, context.snapshot, job,
        resize == context.resizes.end() ? HeldBy(job)
                                        : Union(job.placement, resize->second->target));
  }
  AddStarts(held, context);
  return held;
}

Held HeldAfterStops(const CheckContext& context) {
  Held held(context.snapshot.nodes.size());
  for (const Job& job : context.snapshot.jobs) {
    if (context.stops.count(job.id) > 0) continue;
    const auto resize = context.resizes.find(job.id);
    if (resize != context.resizes.end())
      Add(held, context.snapshot, job, resize->second->target);
    else if (job.state == JobState::kRunning)
      Add(held, context.snapshot, job, job.placement);
    else if (job.state == JobState::kResizing)
      Add(held, context.snapshot, job, job.target);
  }
  AddStarts(held, context);
  return held;
}

std::array<bool, kMaxResources> GuaranteedToAny(const Snapshot& snapshot) {
  std::array<bool, kMaxResources> guaranteed{};
  for (const Queue& queue : snapshot.queues)
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (queue.guaranteed[kind] > 0) guaranteed[kind] = true;
  return guaranteed;
}

int CountedWorkers(const Job& job) {
  if (job.state == JobState::kRunning) return NumWorkers(job.placement);
  if (job.state == JobState::kResizing) return NumWorkers(job.target);
  return 0;
}

bool Saves(const Job& job) { return job.checkpoints && job.checkpoint_cost_ms <= job.grace_ms; }

bool IsOnDrainingNode(const Snapshot& snapshot, const Job& job) {
  return IsOnAny(job, [&](int node) { return snapshot.nodes[node].state == NodeState::kDraining; });
}

bool IsOnNodeThatGoesAway(const Snapshot& snapshot, const Job& job) {
  return IsOnAny(job, [&](int node) {
    return snapshot.nodes[node].state == NodeState::kDraining &&
           snapshot.nodes[node].until != kNever;
  });
}

bool IsPartOf(const Snapshot& snapshot, int queue, int whole) {
  for (std::optional<int> at = queue; at; at = snapshot.queues[*at].parent)
    if (*at == whole) return true;
  return false;
}

int WhatCounts(const Snapshot& snapshot, int queue, int other) {
  while (const std::optional<int> above = snapshot.queues[queue].parent) {
    if (IsPartOf(snapshot, other, *above)) break;
    queue = *above;
  }
  return queue;
}

bool CapAllowsBeforeStops(const Snapshot& snapshot, const Job& job) {
  const int64_t cap = snapshot.users[job.user].CapAt(snapshot.now);
  if (cap == kUnlimited) return true;
  int64_t gpus = Of(snapshot, job, job.min_workers).gpu();
  for (const Job& other : snapshot.jobs)
    if (other.user == job.user && !other.quota_exempt)
      gpus += Of(snapshot, other, CountedWorkers(other)).gpu();
  return gpus <= cap;
}

Resources Of(const Snapshot& snapshot, const Job& job, int workers) {
  return snapshot.worker_requests[job.request].per_worker * workers;
}

}  // namespace renzan::cluster::check
