#include "renzan/cluster/core/order/room_by_right.h"

#include "renzan/cluster/core/place/placement.h"

namespace renzan::cluster {

RoomByRight::RoomByRight(const ClusterView& view, const Quota& quota, const Occupants& occupants,
                         const Ranks& ranks, std::vector<Standing> keep)
    : view_(view), quota_(quota), occupants_(occupants), ranks_(ranks), keep_(std::move(keep)) {}

RoomByRight::Asker RoomByRight::AskerOf(const Job& job) const {
  return {FamilyOf(job), job.queue, ranks_.Of(job), ReclaimsOf(job, ranks_, quota_)};
}

int RoomByRight::FamilyOf(const Job& job) const { return TopOf(view_.snapshot(), job.queue); }

bool RoomByRight::MayStopFor(const Job& job, int index) const {
  const Job& other = view_.snapshot().jobs[index];
  if (!other.preemptible || keep_[index] < ranks_.Of(job).standing) return false;
  if (other.queue != job.queue) {
    const Snapshot& snapshot = view_.snapshot();
    if (keep_[index] <= ranks_.CountsAgainst(other, job) ||
        !quota_.Borrows(SideOf(snapshot, other.queue, job.queue)))
      return false;
    if (IsReclaim(snapshot, ReclaimsOf(job, ranks_, quota_), job, other)) return true;
  }
  return ranks_.WhyItMayStop(job, other).has_value();
}

ClusterView& RoomByRight::EmptiedFor(const Job& job) {
  const auto [at, is_new] = emptied_.try_emplace(AskerOf(job), view_);
  ClusterView& emptied = at->second;
  if (!is_new) return emptied;
  const Snapshot& snapshot = view_.snapshot();
  const auto each = [&](int request) { return snapshot.worker_requests[request].per_worker; };
  for (const int index : occupants_.jobs())
    if (const Job& other = snapshot.jobs[index]; MayStopFor(job, index))
      emptied.Release(each(other.request), other.placement, other.backfilled);
  for (const Taken& taken : taken_[FamilyOf(job)])
    emptied.TakeFuture(each(taken.request), taken.placement);
  return emptied;
}

ClusterView& RoomByRight::FreeFor(int family) {
  return free_.try_emplace(family, view_).first->second;
}

bool RoomByRight::Take(const Job& job) {
  const std::pair key(AskerOf(job), job.request);
  if (nowhere_.Known(key, job.min_workers)) return false;
  const PlacementQuery wanted{.request = job.request,
                              .min_workers = job.min_workers,
                              .max_workers = job.min_workers,
                              .checkpoints = job.checkpoints,
                              .room = Room::kFuture,
                              .unreserved = false};
  ClusterView& free = FreeFor(FamilyOf(job));
  std::optional<Placement> room = FindPlacement(free, wanted);
  if (!room) room = FindPlacement(EmptiedFor(job), wanted);
  if (!room) {
    nowhere_.Add(key, job.min_workers);
    return false;
  }
  const Resources& each = view_.snapshot().worker_requests[job.request].per_worker;
  free.TakeFuture(each, *room);
  for (auto& [asker, emptied] : emptied_)
    if (std::get<0>(asker) == FamilyOf(job)) emptied.TakeFuture(each, *room);
  taken_[FamilyOf(job)].push_back({job.request, std::move(*room)});
  return true;
}

}  // namespace renzan::cluster
