#include "renzan/cluster/core/resize/elastic.h"

#include <algorithm>
#include <map>
#include <set>

#include "renzan/cluster/core/place/placement.h"
#include "renzan/cluster/core/place/placements.h"

namespace renzan::cluster {
namespace {

// A placement for as many additional workers as possible.
std::optional<Placement> More(const ClusterView& view, const Quota& quota,
                              const Entitlement& entitlement, const Job& job, int workers) {
  const int allowed = quota.MostAllowed(job, entitlement.MoreWorkers(job, workers));
  // This search cannot keep the new workers in the domain of the old ones.
  if (allowed == 0 || view.snapshot().worker_requests[job.request].topology_required)
    return std::nullopt;
  return FindPlacement(view, {.request = job.request,
                              .min_workers = 1,
                              .max_workers = allowed,
                              .checkpoints = job.checkpoints});
}

}  // namespace

void GrowElasticJobs(ClusterView& view, Quota& quota, Entitlement& entitlement,
                     const Occupants& occupants, TimeMs min_between, Decisions& decisions) {
  const Snapshot& snapshot = view.snapshot();
  const Ranks& ranks = entitlement.ranks();
  const bool others_wait = std::ranges::any_of(decisions.waits, [](const Wait& wait) {
    return wait.reason == WaitReason::kResources || wait.reason == WaitReason::kFragmented ||
           wait.reason == WaitReason::kReserved;
  });
  std::set<JobId> told;
  for (const Stop& stop : decisions.stops) told.insert(stop.job);
  for (const Resize& resize : decisions.resizes) told.insert(resize.job);
  std::vector<std::pair<const Job*, Start*>> elastic;
  for (Start& start : decisions.starts)
    if (const Job* job = snapshot.Find(start.job); job->max_workers > job->min_workers)
      elastic.emplace_back(job, &start);
  for (const int index : occupants.jobs()) {
    const Job& job = snapshot.jobs[index];
    // A held job that stopped in order to grow might not start again.
    if (job.max_workers == job.min_workers || !SavesWhenStopped(job) || !job.held.empty() ||
        told.contains(job.id) || NumWorkers(job.placement) >= job.max_workers)
      continue;
    // Equals that wait may then take its workers, and were asked first in this cycle. If it grew
    // before, it would be protected from them again.
    TimeMs from = job.last_resize + min_between;
    if (others_wait) from = std::max(from, ranks.levels().MayShrinkForEqualsFrom(job));
    if (snapshot.now >= from)
      elastic.emplace_back(&job, nullptr);
    else
      decisions.look_again = std::min(decisions.look_again, from);
  }
  std::sort(elastic.begin(), elastic.end(), [&](const auto& a, const auto& b) {
    return std::tuple(!ranks.IsUnbound(*a.first), ranks.Of(*a.first).right, a.first->id) <
           std::tuple(!ranks.IsUnbound(*b.first), ranks.Of(*b.first).right, b.first->id);
  });
  for (const auto& [job, start] : elastic) {
    const Placement& placement = start != nullptr ? start->placement : job->placement;
    const std::optional<Placement> more =
        More(view, quota, entitlement, *job, NumWorkers(placement));
    if (!more) continue;
    if (start == nullptr &&
        !ranks.levels().MayGrow(*job, NumWorkers(placement), NumWorkers(*more))) {
      // The longer it runs, the longer it will probably still run.
      decisions.look_again = std::min(decisions.look_again, snapshot.now + min_between);
      continue;
    }
    const bool backfilled = start != nullptr && start->backfill;
    view.TakeNow(snapshot.worker_requests[job->request].per_worker, *more, backfilled);
    quota.Add(*job, NumWorkers(*more));
    entitlement.Take(*job, NumWorkers(*more));
    Placement sum = Sum(placement, *more);
    if (start != nullptr)
      start->placement = std::move(sum);
    else
      decisions.resizes.push_back({job->id, std::move(sum), 0});
  }
}

}  // namespace renzan::cluster
