#include "renzan/cluster/core/preempt/leaving.h"

#include <algorithm>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/placement.h"
#include "renzan/cluster/core/place/placements.h"

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

// The workers of a job on nodes that drain, and the others.
struct Divided {
  Placement stays, leaves;
  bool goes_away = false;  // one of the nodes goes away, even with workers on it
};

Divided Divide(const Snapshot& snapshot, const Job& job) {
  Divided divided;
  for (const Placed& placed : job.placement) {
    const Node& node = snapshot.nodes[placed.node];
    const bool drains = node.state == NodeState::kDraining;
    divided.goes_away |= drains && node.until != kNever;
    (drains ? divided.leaves : divided.stays).push_back(placed);
  }
  return divided;
}

// The domain of all these workers; null if there is none, because labels of nodes can change.
const NodeSet* DomainOf(const ClusterView& view, const WorkerRequest& request,
                        const Placement& workers) {
  if (request.topology_level == kHostLevel) return nullptr;
  for (const NodeSet& domain : view.Domains(request.topology_level))
    if (std::all_of(workers.begin(), workers.end(),
                    [&](const Placed& placed) { return domain.Has(placed.node); }))
      return &domain;
  return nullptr;
}

// A placement for all workers, or for as many as the job can run with; nothing if there is no room.
// Workers that can stay do so, unless the gang gets more workers in another domain.
std::optional<Placement> TargetOf(const ClusterView& view, const Job& job, const Divided& divided) {
  const WorkerRequest& request = view.snapshot().worker_requests[job.request];
  const int all = NumWorkers(job.placement), stay = NumWorkers(divided.stays);
  const bool bound = request.topology_required && stay > 0;
  std::optional<Placement> target;
  if (stay >= job.min_workers) target = divided.stays;
  PlacementQuery query{.request = job.request,
                       .min_workers = std::max(1, job.min_workers - stay),
                       .max_workers = all - stay,
                       .checkpoints = job.checkpoints};
  if (bound) query.within = DomainOf(view, request, divided.stays);
  if (!bound || query.within != nullptr)
    if (const std::optional<Placement> more = FindPlacement(view, query))
      target = Sum(divided.stays, *more);
  const int workers = target ? NumWorkers(*target) : 0;
  if (!bound || workers == all) return target;
  query = {.request = job.request,
           .min_workers = std::max(job.min_workers, workers + 1),
           .max_workers = all,
           .checkpoints = job.checkpoints};
  std::optional<Placement> elsewhere = FindPlacement(view, query);
  return elsewhere ? elsewhere : target;
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
    const Divided divided = Divide(snapshot, job);
    if (divided.leaves.empty() || (!SavesWhenStopped(job) && !divided.goes_away)) continue;
    std::optional<Placement> target;
    if (job.checkpoints) target = TargetOf(view, job, divided);
    if (!target) {
      StopJob(index, StopReason::kNodeLeaving, view, quota, occupants, decisions);
      continue;
    }
    const Resources& each = snapshot.worker_requests[job.request].per_worker;
    view.TakeNow(each, Difference(*target, job.placement), job.backfilled);
    view.Release(each, Difference(job.placement, *target), job.backfilled);
    quota.Remove(job, NumWorkers(job.placement) - NumWorkers(*target));
    occupants.Leave(index);
    decisions.resizes.push_back({job.id, std::move(*target), 0});
  }
}

void EnforceUserCaps(ClusterView& view, Quota& quota, Occupants& occupants, const Ranks& ranks,
                     Decisions& decisions) {
  const Snapshot& snapshot = view.snapshot();
  const auto over = [&](int user) {
    return quota.gpus_of(user) > snapshot.users[user].CapAt(snapshot.now);
  };
  std::vector<int> candidates;
  for (const int index : occupants.jobs()) {
    const Job& job = snapshot.jobs[index];
    if (over(job.user) && SavesWhenStopped(job) && !job.quota_exempt && !occupants.leaving(index) &&
        snapshot.worker_requests[job.request].per_worker.gpu() > 0)
      candidates.push_back(index);
  }
  std::sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    return std::tuple(ranks.Of(snapshot.jobs[b]).right, occupants.cost(a), -a) <
           std::tuple(ranks.Of(snapshot.jobs[a]).right, occupants.cost(b), -b);
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
