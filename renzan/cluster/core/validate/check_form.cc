// Ids, indices and placements are valid; there is exactly one decision about every pending job.

#include "renzan/base/counted.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

bool SizeIsRight(const Job& job, const Placement& placement) {
  const int workers = NumWorkers(placement);
  return workers >= job.min_workers && workers <= job.max_workers;
}

// Checks a start, a target or a reservation.
void CheckGang(CheckContext& context, const char* what, const Job& job,
               const Placement& placement) {
  const std::string fault = PlacementFault(context.snapshot, job, placement, job.placement);
  if (!fault.empty())
    context.ReportFor(job.id, "{} of job {}: {}", what, job.id, fault);
  else if (!SizeIsRight(job, placement))
    context.ReportFor(job.id, "{} of job {}: {}, not {}..{}", what, job.id,
                      Counted(NumWorkers(placement), "worker"), job.min_workers, job.max_workers);
}

// The job; null, with a violation reported, if it does not exist.
const Job* Known(CheckContext& context, const char* what, JobId id) {
  const Job* job = context.snapshot.Find(id);
  if (job == nullptr) context.Report("{} of job {}, which does not exist", what, id);
  return job;
}

void CheckStarts(CheckContext& context) {
  for (const Start& start : context.decisions.starts) {
    const Job* job = Known(context, "start", start.job);
    if (job == nullptr) continue;
    if (!context.starts.emplace(job->id, &start).second)
      context.ReportFor(job->id, "job {} starts twice", job->id);
    if (job->state != JobState::kPending)
      context.ReportFor(job->id, "job {} starts, but is not pending", job->id);
    if (job->eligible_at > context.snapshot.now)
      context.ReportFor(job->id, "job {} starts at {}, before {}", job->id, context.snapshot.now,
                        job->eligible_at);
    if (!job->held.empty())
      context.ReportFor(job->id, "job {} starts, but is held: {}", job->id, job->held);
    if (start.backfill && !(Saves(*job) && job->preemptible))
      context.ReportFor(job->id, "job {} is backfilled, but cannot be stopped without loss",
                        job->id);
    CheckGang(context, "start", *job, start.placement);
  }
}

void CheckStops(CheckContext& context) {
  for (const Stop& stop : context.decisions.stops) {
    const Job* job = Known(context, "stop", stop.job);
    if (job == nullptr) continue;
    if (!context.stops.emplace(job->id, &stop).second)
      context.ReportFor(job->id, "job {} is stopped twice", job->id);
    // A resizing job can only be stopped because its target is going away.
    if (job->state != JobState::kRunning &&
        !(job->state == JobState::kResizing && stop.reason == StopReason::kNodeLeaving))
      context.ReportFor(job->id, "job {} is stopped ({}), but is not running", job->id,
                        NameOf(stop.reason));
  }
}

void CheckResizes(CheckContext& context) {
  for (const Resize& resize : context.decisions.resizes) {
    const Job* job = Known(context, "resize", resize.job);
    if (job == nullptr) continue;
    if (!context.resizes.emplace(job->id, &resize).second)
      context.ReportFor(job->id, "job {} is resized twice", job->id);
    if (job->state != JobState::kRunning)
      context.ReportFor(job->id, "job {} is resized, but is not running", job->id);
    if (context.stops.count(job->id) > 0)
      context.ReportFor(job->id, "job {} is stopped and resized", job->id);
    if (!job->checkpoints)
      context.ReportFor(job->id, "job {} is resized, but does not checkpoint", job->id);
    else if (!Saves(*job) && !IsOnNodeThatGoesAway(context.snapshot, *job))
      context.ReportFor(job->id, "job {} is resized, but does not save within its grace period",
                        job->id);
    if (!job->held.empty() && NumWorkers(resize.target) > NumWorkers(job->placement))
      context.ReportFor(job->id, "job {} grows, but is held: {}", job->id, job->held);
    if (resize.target == job->placement)
      context.ReportFor(job->id, "job {} is resized to its current placement", job->id);
    CheckGang(context, "target", *job, resize.target);
  }
}

void CheckWaits(CheckContext& context) {
  for (const Wait& wait : context.decisions.waits) {
    const Job* job = Known(context, "wait", wait.job);
    if (job == nullptr) continue;
    if (!context.waits.emplace(job->id, &wait).second)
      context.ReportFor(job->id, "job {} waits twice", job->id);
    if (wait.blocked_by != 0 && context.snapshot.Find(wait.blocked_by) == nullptr)
      context.ReportFor(job->id, "job {} is blocked by {}, which does not exist", job->id,
                        wait.blocked_by);
    if (wait.reason == WaitReason::kBackoff && job->eligible_at <= context.snapshot.now)
      context.ReportFor(job->id, "job {} waits for its backoff, which is over", job->id);
  }
  for (const Job& job : context.snapshot.jobs) {
    const bool waits = context.waits.count(job.id) > 0, starts = context.starts.count(job.id) > 0;
    if (job.state != JobState::kPending && waits)
      context.ReportFor(job.id, "job {} waits, but is not pending", job.id);
    if (job.state == JobState::kPending && waits == starts)
      context.ReportFor(job.id, "job {} is pending and {}", job.id,
                        waits ? "both starts and waits" : "neither starts nor waits");
  }
}

void CheckReservations(CheckContext& context) {
  Held reserved(context.snapshot.nodes.size());
  for (const Reservation& reservation : context.decisions.reservations) {
    const Job* job = Known(context, "reservation", reservation.job);
    if (job == nullptr) continue;
    if (context.waits.count(job->id) == 0)
      context.ReportFor(job->id, "job {} has a reservation, but does not wait", job->id);
    const std::string fault = PlacementFault(context.snapshot, *job, reservation.placement);
    CheckGang(context, "reservation", *job, reservation.placement);
    if (!fault.empty()) continue;
    for (const Placed& placed : reservation.placement) {
      const Node& node = context.snapshot.nodes[placed.node];
      reserved[placed.node] += Of(context.snapshot, *job, placed.workers);
      if (node.state != NodeState::kReady && node.state != NodeState::kBooting)
        context.ReportFor(job->id,
                          "reservation of job {} on node {}, which is not ready or booting",
                          job->id, node.name);
      if (!reserved[placed.node].FitsIn(node.capacity))
        context.ReportFor(job->id, "reservation of job {}: node {} is reserved beyond its capacity",
                          job->id, node.name);
    }
  }
}

void CheckCheckpoints(CheckContext& context) {
  std::map<JobId, int> times;
  for (const JobId id : context.decisions.checkpoints) {
    const Job* job = Known(context, "checkpoint", id);
    if (job == nullptr) continue;
    if (++times[id] > 1) context.ReportFor(id, "job {} is asked for two checkpoints", id);
    if (job->state != JobState::kRunning || !job->checkpoints || context.stops.count(id) > 0 ||
        context.resizes.count(id) > 0)
      context.ReportFor(id, "job {} is asked for a checkpoint, but cannot make one now", id);
  }
}

}  // namespace

void CheckForm(CheckContext& context) {
  CheckStarts(context);
  CheckStops(context);
  CheckResizes(context);
  CheckWaits(context);
  CheckReservations(context);
  CheckCheckpoints(context);
  if (context.decisions.look_again <= context.snapshot.now)
    context.Report("look again at {}, which is not after {}", context.decisions.look_again,
                   context.snapshot.now);
}

}  // namespace renzan::cluster::check
