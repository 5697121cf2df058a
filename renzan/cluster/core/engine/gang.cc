#include "renzan/cluster/core/engine/gang.h"

#include <algorithm>
#include <set>
#include <utility>

#include "renzan/base/error.h"

namespace renzan::cluster {

void StartGang(Job& job, const Placement& placement, bool backfilled, TimeMs now) {
  CHECK_MSG(job.state == JobState::kPending, "job {} starts, but is not pending", job.id);
  job.state = JobState::kRunning;
  job.placement = placement;
  job.backfilled = backfilled;
  job.started = job.last_resize = now;
  job.waiting_since = 0;
}

void StopGang(Job& job, const Stop& stop) {
  CHECK_MSG(job.state == JobState::kRunning || job.state == JobState::kResizing,
            "job {} is stopped, but is not running", job.id);
  job.state = JobState::kStopping;
  job.target.clear();
  ++job.preemptions;
  job.reservation_yields += stop.reason == StopReason::kReservation;
  job.stopping_for = stop.on_behalf_of;
}

void EvictGang(Job& job) {
  CHECK_MSG(job.state != JobState::kPending, "job {} is evicted, but is pending", job.id);
  job.state = JobState::kStopping;
  job.target.clear();
}

void MoveGang(Job& job, const Resize& resize) {
  CHECK_MSG(job.state == JobState::kRunning, "job {} is moved, but is not running", job.id);
  job.state = JobState::kResizing;
  job.target = resize.target;
  job.preemptions += resize.on_behalf_of != 0;
  job.stopping_for = resize.on_behalf_of;
}

void RestartGang(Job& job, TimeMs now) {
  CHECK_MSG(job.state == JobState::kResizing, "job {} restarts, but is not being moved", job.id);
  const Placement target = std::move(job.target);
  const bool backfilled = job.backfilled;
  RequeueGang(job, now);
  StartGang(job, target, backfilled, now);
}

void FailedEarly(Job& job, const std::string& node) {
  const auto at = std::lower_bound(job.failed_on.begin(), job.failed_on.end(), node);
  if (at == job.failed_on.end() || *at != node) job.failed_on.insert(at, node);
}

void RequeueGang(Job& job, TimeMs when) {
  CHECK_MSG(job.state != JobState::kPending, "job {} is requeued, but is pending", job.id);
  job.attained_worker_ms +=
      std::max<TimeMs>(0, when - job.started) * int64_t{NumWorkers(job.placement)};
  job.state = JobState::kPending;
  job.placement.clear();
  job.target.clear();
  job.stopping_for = 0;
  job.started = job.last_resize = 0;
  job.backfilled = false;
  job.last_checkpoint.reset();
  job.expected_end.reset();
  job.waiting_since = when;
}

std::vector<JobId> NoLongerBackfilled(const std::vector<Reservation>& reservations,
                                      const Snapshot& snapshot) {
  std::set<int> reserved;
  for (const Reservation& reservation : reservations)
    for (const Placed& placed : reservation.placement) reserved.insert(placed.node);
  std::vector<JobId> jobs;
  for (const Job& job : snapshot.jobs)
    if (job.backfilled &&
        std::none_of(job.placement.begin(), job.placement.end(),
                     [&](const Placed& placed) { return reserved.contains(placed.node); }))
      jobs.push_back(job.id);
  return jobs;
}

void SetReservations(const std::vector<Reservation>& reservations, Snapshot& snapshot) {
  for (const JobId job : NoLongerBackfilled(reservations, snapshot))
    snapshot.Find(job)->backfilled = false;
  snapshot.reservations = reservations;
}

}  // namespace renzan::cluster
