#include "renzan/cluster/core/preempt/leaving.h"

#include <algorithm>

namespace renzan::cluster {
namespace {

void StopJob(int index, StopReason reason, ClusterView& view, Quota& quota, Occupants& occupants,
             Decisions& decisions) {
  const Job& job = view.snapshot().jobs[index];
  decisions.stops.push_back({job.id, reason, 0});
  view.Release(view.snapshot().worker_requests[job.request].per_worker, job.placement,
               job.backfilled);
  quota.Remove(job, NumWorkers(job.placement));
  occupants.Leave(index);
}

}  // namespace

void LeaveDrainingNodes(ClusterView& view, Quota& quota, Occupants& occupants,
                        Decisions& decisions) {
  const Snapshot& snapshot = view.snapshot();
  if (std::none_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                   [](const Node& node) { return node.state == NodeState::kDraining; }))
    return;
  for (const int index : occupants.jobs()) {
    const Job& job = snapshot.jobs[index];
    Placement stays, leaves;
    bool goes_away = false;
    for (const Placed& placed : job.placement) {
      const Node& node = snapshot.nodes[placed.node];
      const bool drains = node.state == NodeState::kDraining;
      goes_away |= drains && node.until != kNever;
      (drains ? leaves : stays).push_back(placed);
    }
    if (leaves.empty() || (!SavesWhenStopped(job) && !goes_away)) continue;
    if (!job.checkpoints || NumWorkers(stays) < job.min_workers) {
      StopJob(index, StopReason::kNodeLeaving, view, quota, occupants, decisions);
      continue;
    }
    view.Release(snapshot.worker_requests[job.request].per_worker, leaves, job.backfilled);
    quota.Remove(job, NumWorkers(leaves));
    occupants.Leave(index);
    decisions.resizes.push_back({job.id, std::move(stays), 0});
  }
}

void EnforceUserCaps(ClusterView& view, Quota& quota, Occupants& occupants, Decisions& decisions) {
  const Snapshot& snapshot = view.snapshot();
  const auto over = [&](int user) {
    return quota.gpus_of(user) > snapshot.users[user].CapAt(snapshot.now);
  };
  std::vector<int> candidates;
  for (const int index : occupants.jobs()) {
    const Job& job = snapshot.jobs[index];
    if (over(job.user) && SavesWhenStopped(job) && !job.grand_challenge &&
        !occupants.leaving(index) && snapshot.worker_requests[job.request].per_worker.gpu() > 0)
      candidates.push_back(index);
  }
  std::sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    return std::tuple(snapshot.jobs[a].priority, occupants.cost(a), -a) <
           std::tuple(snapshot.jobs[b].priority, occupants.cost(b), -b);
  });
  for (const int index : candidates)
    if (over(snapshot.jobs[index].user))
      StopJob(index, StopReason::kOverCap, view, quota, occupants, decisions);
  for (const User& user : snapshot.users)
    for (const QuotaOverride& quota_override : user.quota_overrides)
      if (quota_override.until > snapshot.now)
        decisions.look_again = std::min(decisions.look_again, quota_override.until);
}

}  // namespace renzan::cluster
