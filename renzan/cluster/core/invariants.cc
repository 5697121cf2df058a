#include "renzan/cluster/core/invariants.h"

#include "renzan/cluster/core/check.h"

namespace renzan::cluster {
namespace {

using check::Pass;

bool InRange(int index, size_t size) { return index >= 0 && index < static_cast<int>(size); }

// Of the snapshot's indices and numbers, which everything else relies on.
void CheckIndices(Pass& pass) {
  const Snapshot& snapshot = pass.snapshot;
  for (size_t node = 0; node < snapshot.nodes.size(); ++node) {
    const int pool = snapshot.nodes[node].pool;
    if (pool != -1 && !InRange(pool, snapshot.pools.size()))
      pass.Report("node {} ({}): pool {} does not exist", node, snapshot.nodes[node].name, pool);
  }
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const Job& job = snapshot.jobs[i];
    if (i > 0 && snapshot.jobs[i - 1].id >= job.id)
      pass.Report("job {} does not stand in order of its id", job.id);
    if (!InRange(job.shape, snapshot.shapes.size()) ||
        !InRange(job.queue, snapshot.queues.size()) || !InRange(job.user, snapshot.users.size()))
      pass.Report("job {}: its shape, queue or user does not exist", job.id);
    if (job.min_workers < 1 || job.max_workers < job.min_workers)
      pass.Report("job {}: {}..{} workers", job.id, job.min_workers, job.max_workers);
  }
}

// Workers only where there can be some, and whole gangs.
void CheckStanding(Pass& pass, const Job& job, const char* what, const Placement& placement) {
  const std::string fault = check::PlacementFault(pass.snapshot, job, placement);
  if (!fault.empty()) return pass.Report("job {}: {}: {}", job.id, what, fault);
  for (const Placed& placed : placement) {
    const Node& node = pass.snapshot.nodes[placed.node];
    if (node.state == NodeState::kGone || node.state == NodeState::kBooting)
      pass.Report("job {}: {}: node {} is not there", job.id, what, node.name);
  }
  const int workers = NumWorkers(placement);
  if (workers < job.min_workers || workers > job.max_workers)
    pass.Report("job {}: {}: {} workers, not {}..{}", job.id, what, workers, job.min_workers,
                job.max_workers);
}

void CheckJobs(Pass& pass) {
  for (const Job& job : pass.snapshot.jobs) {
    if (job.state == JobState::kPending) {
      if (!job.placement.empty()) pass.Report("job {} is pending and has a placement", job.id);
    } else {
      CheckStanding(pass, job, "placement", job.placement);
    }
    if (job.state == JobState::kResizing)
      CheckStanding(pass, job, "target", job.target);
    else if (!job.target.empty())
      pass.Report("job {} is not resizing and has a target", job.id);
  }
}

void CheckCapacity(Pass& pass, const check::Held& held, const char* when) {
  for (size_t node = 0; node < held.size(); ++node) {
    const Resources& capacity = pass.snapshot.nodes[node].capacity;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (held[node][kind] > capacity[kind])
        pass.Report("node {}: resource {}: {} of {} taken {}", pass.snapshot.nodes[node].name, kind,
                    held[node][kind], capacity[kind], when);
  }
}

}  // namespace

std::vector<std::string> CheckSnapshot(const Snapshot& snapshot) {
  const Decisions none;
  Pass pass{.snapshot = snapshot, .decisions = none};
  CheckIndices(pass);
  if (pass.violations.empty()) CheckJobs(pass);
  if (pass.violations.empty()) CheckCapacity(pass, check::HeldNow(snapshot), "now");
  return pass.violations;
}

std::vector<std::string> CheckDecisions(const Snapshot& snapshot, const Decisions& decisions) {
  Pass pass{.snapshot = snapshot, .decisions = decisions};
  pass.violations = CheckSnapshot(snapshot);
  if (!pass.violations.empty()) return pass.violations;
  check::CheckForm(pass);
  if (!pass.violations.empty()) return pass.violations;
  CheckCapacity(pass, check::HeldAtOnce(pass), "after this pass");
  check::CheckRoom(pass);
  check::CheckQuotas(pass);
  check::CheckRights(pass);
  check::CheckNotInVain(pass);
  return pass.violations;
}

}  // namespace renzan::cluster
