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
void CheckGang(Cycle& cycle, const char* what, const Job& job, const Placement& placement) {
  const std::string fault = PlacementFault(cycle.snapshot, job, placement, job.placement);
  if (!fault.empty())
    cycle.Report("{} of job {}: {}", what, job.id, fault);
  else if (!SizeIsRight(job, placement))
    cycle.Report("{} of job {}: {} workers, not {}..{}", what, job.id, NumWorkers(placement),
                 job.min_workers, job.max_workers);
}

// The job, or null after a report.
const Job* Known(Cycle& cycle, const char* what, JobId id) {
  const Job* job = cycle.snapshot.Find(id);
  if (job == nullptr) cycle.Report("{} of job {}, which does not exist", what, id);
  return job;
}

void CheckStarts(Cycle& cycle) {
  for (const Start& start : cycle.decisions.starts) {
    const Job* job = Known(cycle, "start", start.job);
    if (job == nullptr) continue;
    if (!cycle.starts.emplace(job->id, &start).second) cycle.Report("job {} starts twice", job->id);
    if (job->state != JobState::kPending) cycle.Report("job {} starts, is not pending", job->id);
    if (job->eligible_at > cycle.snapshot.now)
      cycle.Report("job {} starts at {}, before {}", job->id, cycle.snapshot.now, job->eligible_at);
    if (!job->held.empty()) cycle.Report("job {} starts and is held: {}", job->id, job->held);
    const bool saves = job->checkpoints && job->checkpoint_cost_ms <= job->grace_ms;
    if (start.backfill && !(saves && job->preemptible))
      cycle.Report("job {} is backfilled and cannot be stopped without loss", job->id);
    CheckGang(cycle, "start", *job, start.placement);
  }
}

void CheckStops(Cycle& cycle) {
  for (const Stop& stop : cycle.decisions.stops) {
    const Job* job = Known(cycle, "stop", stop.job);
    if (job == nullptr) continue;
    if (!cycle.stops.emplace(job->id, &stop).second)
      cycle.Report("job {} is stopped twice", job->id);
    // A job that moves can only be stopped because its target goes away.
    if (job->state != JobState::kRunning &&
        !(job->state == JobState::kResizing && stop.reason == StopReason::kNodeLeaving))
      cycle.Report("job {} is stopped ({}) and is not running", job->id, NameOf(stop.reason));
  }
}

void CheckResizes(Cycle& cycle) {
  for (const Resize& resize : cycle.decisions.resizes) {
    const Job* job = Known(cycle, "resize", resize.job);
    if (job == nullptr) continue;
    if (!cycle.resizes.emplace(job->id, &resize).second)
      cycle.Report("job {} is resized twice", job->id);
    if (job->state != JobState::kRunning) cycle.Report("job {} resized, is not running", job->id);
    if (cycle.stops.count(job->id) > 0) cycle.Report("job {} is stopped and resized", job->id);
    if (!job->checkpoints) cycle.Report("job {} is resized and does not checkpoint", job->id);
    if (resize.target == job->placement) cycle.Report("job {} is resized to what it is", job->id);
    CheckGang(cycle, "target", *job, resize.target);
  }
}

void CheckWaits(Cycle& cycle) {
  for (const Wait& wait : cycle.decisions.waits) {
    const Job* job = Known(cycle, "wait", wait.job);
    if (job == nullptr) continue;
    if (!cycle.waits.emplace(job->id, &wait).second) cycle.Report("job {} waits twice", job->id);
    if (wait.blocked_by != 0 && cycle.snapshot.Find(wait.blocked_by) == nullptr)
      cycle.Report("job {} is blocked by {}, which does not exist", job->id, wait.blocked_by);
    if (wait.reason == WaitReason::kBackoff && job->eligible_at <= cycle.snapshot.now)
      cycle.Report("job {} waits for its back-off, which is over", job->id);
  }
  for (const Job& job : cycle.snapshot.jobs) {
    const bool waits = cycle.waits.count(job.id) > 0, starts = cycle.starts.count(job.id) > 0;
    if (job.state != JobState::kPending && waits)
      cycle.Report("job {} waits and is not pending", job.id);
    if (job.state == JobState::kPending && waits == starts)
      cycle.Report("job {} is pending and {}", job.id,
                   waits ? "both starts and waits" : "neither starts nor waits");
  }
}

void CheckReservations(Cycle& cycle) {
  Held reserved(cycle.snapshot.nodes.size());
  for (const Reservation& reservation : cycle.decisions.reservations) {
    const Job* job = Known(cycle, "reservation", reservation.job);
    if (job == nullptr) continue;
    if (cycle.waits.count(job->id) == 0)
      cycle.Report("job {} has a reservation and does not wait", job->id);
    const std::string fault = PlacementFault(cycle.snapshot, *job, reservation.placement);
    CheckGang(cycle, "reservation", *job, reservation.placement);
    if (!fault.empty()) continue;
    for (const Placed& placed : reservation.placement) {
      const Node& node = cycle.snapshot.nodes[placed.node];
      reserved[placed.node] += Of(cycle.snapshot, *job, placed.workers);
      if (node.state != NodeState::kReady && node.state != NodeState::kBooting)
        cycle.Report("reservation of job {} on node {}, which leaves", job->id, node.name);
      if (!reserved[placed.node].FitsIn(node.capacity))
        cycle.Report("reservation of job {}: node {} is reserved beyond its capacity", job->id,
                     node.name);
    }
  }
}

void CheckCheckpoints(Cycle& cycle) {
  std::map<JobId, int> times;
  for (const JobId id : cycle.decisions.checkpoints) {
    const Job* job = Known(cycle, "checkpoint", id);
    if (job == nullptr) continue;
    if (++times[id] > 1) cycle.Report("job {} is asked for two checkpoints", id);
    if (job->state != JobState::kRunning || !job->checkpoints || cycle.stops.count(id) > 0 ||
        cycle.resizes.count(id) > 0)
      cycle.Report("job {} is asked for a checkpoint that it cannot make now", id);
  }
}

}  // namespace

void CheckForm(Cycle& cycle) {
  CheckStarts(cycle);
  CheckStops(cycle);
  CheckResizes(cycle);
  CheckWaits(cycle);
  CheckReservations(cycle);
  CheckCheckpoints(cycle);
  if (cycle.decisions.look_again <= cycle.snapshot.now)
    cycle.Report("look again at {}, which is not after {}", cycle.decisions.look_again,
                 cycle.snapshot.now);
}

}  // namespace renzan::cluster::check
