// What happens to jobs: a journal in memory, and workers in virtual time.

#include "renzan/cluster/simulate/simulation.h"

namespace renzan::cluster::simulate {

void Simulation::Commit(const Transition& transition) {
  cluster_.recorded(transition.job) = {transition.facts, transition.attempt};
}

const Resources* Simulation::Offered(int node) const {
  return &cluster_.snapshot().nodes[node].capacity;
}

void Simulation::Start(JobId job) { ExpectOfJob(cluster_.Started(job), What::kAttemptEnds, job); }

void Simulation::Stop(JobId job) { ExpectOfJob(cluster_.Stopped(job), What::kAttemptEnds, job); }

void Simulation::Checkpoint(JobId job) {
  ++result_.totals.checkpoints_requested;
  cluster_.Checkpoint(job);
}

void Simulation::Ended(JobId job, const Placement&, const EndedAttempt& how) {
  if (HasEnded(how.outcome.state)) return;
  const TimeMs again = cluster_.snapshot().Find(job)->eligible_at;
  if (again > cluster_.now())
    ExpectOfJob(again, What::kMayStartAgain, job);
  else
    cluster_.Enqueue(job);
}

void Simulation::EndAttempt(JobId job, bool node_failed) {
  const AttemptEnd end = cluster_.EndAttempt(job, node_failed);
  // The rest of its gang may stay placed.
  holds_changed_ |= end.by == EndedBy::kRequest;
  const RetryPolicy retries = cluster_.RetriesOf(job);
  const EndRules rules{retries, /*cancelled=*/false, kEarlyFailureMs};
  const EndedAttempt ended = lifecycle_.Finish(job, end, rules, cluster_.now());
  if (!HasEnded(ended.outcome.state)) return;
  cluster_.Remove(job);
  ++ended_;
}

}  // namespace renzan::cluster::simulate
