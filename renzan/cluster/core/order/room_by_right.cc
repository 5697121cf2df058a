#include "renzan/cluster/core/order/room_by_right.h"

#include "renzan/cluster/core/place/placement.h"

namespace renzan::cluster {

RoomByRight::RoomByRight(const ClusterView& view, const Quota& quota, const Occupants& occupants,
                         std::vector<bool> keep)
    : view_(view), quota_(quota), occupants_(occupants), keep_(std::move(keep)) {}

const ClusterView& RoomByRight::EmptiedFor(int queue) {
  const auto [at, is_new] = emptied_.try_emplace(queue, view_);
  if (!is_new) return at->second;
  const Snapshot& snapshot = view_.snapshot();
  for (const int index : occupants_.jobs()) {
    const Job& job = snapshot.jobs[index];
    const bool may_stop = job.queue == queue || (!keep_[index] && quota_.Borrows(job.queue));
    if (!may_stop || !job.preemptible || job.grand_challenge) continue;
    at->second.Release(snapshot.worker_requests[job.request].per_worker, job.placement,
                       job.backfilled);
  }
  return at->second;
}

bool RoomByRight::IsThereFor(const Job& job) {
  const std::pair key(job.queue, job.request);
  if (nowhere_.Known(key, job.min_workers)) return false;
  const bool is_there = FindPlacement(EmptiedFor(job.queue), {.request = job.request,
                                                              .min_workers = job.min_workers,
                                                              .max_workers = job.min_workers,
                                                              .checkpoints = job.checkpoints,
                                                              .room = Room::kFuture,
                                                              .unreserved = false})
                            .has_value();
  if (!is_there) nowhere_.Add(key, job.min_workers);
  return is_there;
}

}  // namespace renzan::cluster
