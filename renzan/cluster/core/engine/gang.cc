#include "renzan/cluster/core/engine/gang.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

void MakeRoomFor(Job& job, JobId on_behalf_of) {
  job.reservation_yields += job.backfilled && on_behalf_of != 0;
  job.stopping_for = on_behalf_of;
}

}  // namespace

void StartGang(Job& job, const Placement& placement, bool backfilled, TimeMs now) {
  CHECK_MSG(job.state == JobState::kPending, "job {} starts, but is not pending", job.id);
  job.state = JobState::kRunning;
  job.placement = placement;
  job.backfilled = backfilled;
  job.started = job.last_resize = now;
  job.waiting_since = 0;
}

void StopGang(Job& job, JobId on_behalf_of) {
  CHECK_MSG(job.state == JobState::kRunning || job.state == JobState::kResizing,
            "job {} is stopped, but is not running", job.id);
  job.state = JobState::kStopping;
  job.target.clear();
  ++job.preemptions;
  MakeRoomFor(job, on_behalf_of);
}

void EvictGang(Job& job) {
  CHECK_MSG(job.state != JobState::kPending, "job {} is evicted, but is pending", job.id);
  job.state = JobState::kStopping;
  job.target.clear();
}

void MoveGang(Job& job, const Placement& target, JobId on_behalf_of) {
  CHECK_MSG(job.state == JobState::kRunning, "job {} is moved, but is not running", job.id);
  job.state = JobState::kResizing;
  job.target = target;
  job.preemptions += on_behalf_of != 0;
  MakeRoomFor(job, on_behalf_of);
}

void RestartGang(Job& job, TimeMs now) {
  CHECK_MSG(job.state == JobState::kResizing, "job {} restarts, but is not being moved", job.id);
  const Placement target = std::move(job.target);
  const bool backfilled = job.backfilled;
  RequeueGang(job, now);
  StartGang(job, target, backfilled, now);
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

}  // namespace renzan::cluster
