#include "renzan/cluster/core/engine/carry_out.h"

#include <algorithm>

#include "renzan/cluster/core/engine/gang.h"

namespace renzan::cluster {
namespace {

// The decision's job, if it is still in the state that the decision is for.
Job* FindIn(JobState state, JobId id, Snapshot& snapshot) {
  Job* job = snapshot.Find(id);
  return job != nullptr && job->state == state ? job : nullptr;
}

void Apply(const Start& start, Job& job, TimeMs now) {
  StartGang(job, start.placement, start.backfill, now);
}
void Apply(const Stop& stop, Job& job, TimeMs) { StopGang(job, stop); }
void Apply(const Resize& resize, Job& job, TimeMs) { MoveGang(job, resize); }

template <typename Decision>
bool CarryOutOnJob(const Decision& decision, JobState from, Snapshot& snapshot,
                   Environment& environment) {
  Job* job = FindIn(from, decision.job, snapshot);
  if (job == nullptr) return false;
  environment.Commit(decision);
  Apply(decision, *job, snapshot.now);
  environment.Perform(decision);
  return true;
}

// Whether any job has workers on the node, or will have after its move.
bool IsHeld(const Snapshot& snapshot, int node) {
  return std::any_of(snapshot.jobs.begin(), snapshot.jobs.end(), [&](const Job& job) {
    return IsOn(job.placement, node) || IsOn(job.target, node);
  });
}

void CarryOutOnNode(const NodeChange& change, Snapshot& snapshot, Environment& environment) {
  environment.Commit(change);
  ChangeNode(change, snapshot);
  environment.Perform(change);
}

}  // namespace

bool CarryOut(const Start& start, Snapshot& snapshot, Environment& environment) {
  return CarryOutOnJob(start, JobState::kPending, snapshot, environment);
}

bool CarryOut(const Stop& stop, Snapshot& snapshot, Environment& environment) {
  return CarryOutOnJob(stop, JobState::kRunning, snapshot, environment);
}

bool CarryOut(const Resize& resize, Snapshot& snapshot, Environment& environment) {
  return CarryOutOnJob(resize, JobState::kRunning, snapshot, environment);
}

bool CarryOut(const ScaleIn& scale, Snapshot& snapshot, Environment& environment) {
  Node node = snapshot.nodes[scale.node];
  if (node.state != NodeState::kReady || IsHeld(snapshot, scale.node)) return false;
  node.state = NodeState::kGone;
  node.until = kNever;
  node.idle_since = snapshot.now;
  CarryOutOnNode({scale.node, std::move(node)}, snapshot, environment);
  return true;
}

bool CarryOut(const Decisions& decisions, Snapshot& snapshot, Environment& environment) {
  bool changed = !decisions.scale_out.empty();
  for (const Stop& stop : decisions.stops) changed |= CarryOut(stop, snapshot, environment);
  for (const Resize& resize : decisions.resizes) changed |= CarryOut(resize, snapshot, environment);
  for (const Start& start : decisions.starts) changed |= CarryOut(start, snapshot, environment);
  if (decisions.reservations != snapshot.reservations) {
    environment.Commit(decisions.reservations);
    SetReservations(decisions.reservations, snapshot);
    changed = true;
  }
  for (const ScaleOut& scale : decisions.scale_out)
    for (int node = 0; node < scale.nodes; ++node)
      CarryOutOnNode(NodeToBuy(snapshot, scale.pool), snapshot, environment);
  for (const ScaleIn& scale : decisions.scale_in) changed |= CarryOut(scale, snapshot, environment);
  for (const JobId job : decisions.checkpoints)
    if (FindIn(JobState::kRunning, job, snapshot) != nullptr)
      environment.Perform(CheckpointRequest{job});
  return changed;
}

}  // namespace renzan::cluster
