// Ids, indices, placements; every job has exactly one thing decided about it.

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

bool SizeIsRight(const Job& job, const Placement& placement) {
  const int workers = NumWorkers(placement);
  return workers >= job.min_workers && workers <= job.max_workers;
}

// Of a start, a target or a reservation.
void CheckGang(Pass& pass, const char* what, const Job& job, const Placement& placement) {
  const std::string fault = PlacementFault(pass.snapshot, job, placement, job.placement);
  if (!fault.empty())
    pass.Report("{} of job {}: {}", what, job.id, fault);
  else if (!SizeIsRight(job, placement))
    pass.Report("{} of job {}: {} workers, not {}..{}", what, job.id, NumWorkers(placement),
                job.min_workers, job.max_workers);
}

// The job, or null after a report.
const Job* Known(Pass& pass, const char* what, JobId id) {
  const Job* job = pass.snapshot.Find(id);
  if (job == nullptr) pass.Report("{} of job {}, which does not exist", what, id);
  return job;
}

void CheckStarts(Pass& pass) {
  for (const Start& start : pass.decisions.starts) {
    const Job* job = Known(pass, "start", start.job);
    if (job == nullptr) continue;
    if (!pass.starts.emplace(job->id, &start).second) pass.Report("job {} starts twice", job->id);
    if (job->state != JobState::kPending) pass.Report("job {} starts, is not pending", job->id);
    if (job->eligible_at > pass.snapshot.now)
      pass.Report("job {} starts at {}, before {}", job->id, pass.snapshot.now, job->eligible_at);
    if (!job->held.empty()) pass.Report("job {} starts and is held: {}", job->id, job->held);
    const bool saves = job->checkpoints && job->checkpoint_cost_ms <= job->grace_ms;
    if (start.backfill && !(saves && job->preemptible))
      pass.Report("job {} is backfilled and cannot be stopped without loss", job->id);
    CheckGang(pass, "start", *job, start.placement);
  }
}

void CheckStops(Pass& pass) {
  for (const Stop& stop : pass.decisions.stops) {
    const Job* job = Known(pass, "stop", stop.job);
    if (job == nullptr) continue;
    if (!pass.stops.emplace(job->id, &stop).second) pass.Report("job {} is stopped twice", job->id);
    // A job that moves can only be stopped because its target goes away.
    if (job->state != JobState::kRunning &&
        !(job->state == JobState::kResizing && stop.reason == StopReason::kNodeLeaving))
      pass.Report("job {} is stopped ({}) and is not running", job->id, NameOf(stop.reason));
  }
}

void CheckResizes(Pass& pass) {
  for (const Resize& resize : pass.decisions.resizes) {
    const Job* job = Known(pass, "resize", resize.job);
    if (job == nullptr) continue;
    if (!pass.resizes.emplace(job->id, &resize).second)
      pass.Report("job {} is resized twice", job->id);
    if (job->state != JobState::kRunning) pass.Report("job {} resized, is not running", job->id);
    if (pass.stops.count(job->id) > 0) pass.Report("job {} is stopped and resized", job->id);
    if (!job->checkpoints) pass.Report("job {} is resized and does not checkpoint", job->id);
    if (resize.target == job->placement) pass.Report("job {} is resized to what it is", job->id);
    CheckGang(pass, "target", *job, resize.target);
  }
}

void CheckWaits(Pass& pass) {
  for (const Wait& wait : pass.decisions.waits) {
    const Job* job = Known(pass, "wait", wait.job);
    if (job == nullptr) continue;
    if (!pass.waits.emplace(job->id, &wait).second) pass.Report("job {} waits twice", job->id);
    if (wait.blocked_by != 0 && pass.snapshot.Find(wait.blocked_by) == nullptr)
      pass.Report("job {} is blocked by {}, which does not exist", job->id, wait.blocked_by);
    if (wait.reason == WaitReason::kBackoff && job->eligible_at <= pass.snapshot.now)
      pass.Report("job {} waits for its back-off, which is over", job->id);
  }
  for (const Job& job : pass.snapshot.jobs) {
    const bool waits = pass.waits.count(job.id) > 0, starts = pass.starts.count(job.id) > 0;
    if (job.state != JobState::kPending && waits)
      pass.Report("job {} waits and is not pending", job.id);
    if (job.state == JobState::kPending && waits == starts)
      pass.Report("job {} is pending and {}", job.id,
                  waits ? "both starts and waits" : "neither starts nor waits");
  }
}

void CheckReservations(Pass& pass) {
  Held reserved(pass.snapshot.nodes.size());
  for (const Reservation& reservation : pass.decisions.reservations) {
    const Job* job = Known(pass, "reservation", reservation.job);
    if (job == nullptr) continue;
    if (pass.waits.count(job->id) == 0)
      pass.Report("job {} has a reservation and does not wait", job->id);
    const std::string fault = PlacementFault(pass.snapshot, *job, reservation.placement);
    CheckGang(pass, "reservation", *job, reservation.placement);
    if (!fault.empty()) continue;
    for (const Placed& placed : reservation.placement) {
      const Node& node = pass.snapshot.nodes[placed.node];
      reserved[placed.node] += Of(pass.snapshot, *job, placed.workers);
      if (node.state != NodeState::kReady && node.state != NodeState::kBooting)
        pass.Report("reservation of job {} on node {}, which leaves", job->id, node.name);
      if (!reserved[placed.node].FitsIn(node.capacity))
        pass.Report("reservation of job {}: node {} is reserved beyond its capacity", job->id,
                    node.name);
    }
  }
}

void CheckCheckpoints(Pass& pass) {
  std::map<JobId, int> times;
  for (const JobId id : pass.decisions.checkpoints) {
    const Job* job = Known(pass, "checkpoint", id);
    if (job == nullptr) continue;
    if (++times[id] > 1) pass.Report("job {} is asked for two checkpoints", id);
    if (job->state != JobState::kRunning || !job->checkpoints || pass.stops.count(id) > 0 ||
        pass.resizes.count(id) > 0)
      pass.Report("job {} is asked for a checkpoint that it cannot make now", id);
  }
}

}  // namespace

void CheckForm(Pass& pass) {
  CheckStarts(pass);
  CheckStops(pass);
  CheckResizes(pass);
  CheckWaits(pass);
  CheckReservations(pass);
  CheckCheckpoints(pass);
  if (pass.decisions.look_again <= pass.snapshot.now)
    pass.Report("look again at {}, which is not after {}", pass.decisions.look_again,
                pass.snapshot.now);
}

}  // namespace renzan::cluster::check
