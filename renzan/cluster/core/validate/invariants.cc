#include "renzan/cluster/core/validate/invariants.h"

#include <utility>

#include "renzan/cluster/core/validate/check.h"
#include "renzan/cluster/core/validate/withhold.h"

namespace renzan::cluster {
namespace {

using check::Cycle;

bool InRange(int index, size_t size) { return index >= 0 && index < static_cast<int>(size); }

// Of the snapshot's indices and numbers, which everything else relies on.
void CheckIndices(Cycle& cycle) {
  const Snapshot& snapshot = cycle.snapshot;
  for (size_t node = 0; node < snapshot.nodes.size(); ++node) {
    const int pool = snapshot.nodes[node].pool;
    if (pool != -1 && !InRange(pool, snapshot.pools.size()))
      cycle.Report("node {} ({}): pool {} does not exist", node, snapshot.nodes[node].name, pool);
  }
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const Job& job = snapshot.jobs[i];
    if (i > 0 && snapshot.jobs[i - 1].id >= job.id)
      cycle.Report("job {} does not stand in order of its id", job.id);
    if (!InRange(job.request, snapshot.worker_requests.size()) ||
        !InRange(job.queue, snapshot.queues.size()) || !InRange(job.user, snapshot.users.size()))
      cycle.Report("job {}: its request, queue or user does not exist", job.id);
    if (job.min_workers < 1 || job.max_workers < job.min_workers)
      cycle.Report("job {}: {}..{} workers", job.id, job.min_workers, job.max_workers);
    for (const Placement* placement : {&job.placement, &job.target})
      if (const std::string fault = check::FormFault(snapshot, *placement); !fault.empty())
        cycle.Report("job {}: {}: {}", job.id, placement == &job.target ? "target" : "placement",
                     fault);
  }
}

// Of one job or one node; what is wrong with the indices is found before.
struct Faults {
  const Snapshot& snapshot;
  std::vector<SnapshotFault> found;

  template <typename... Args>
  void OfJob(JobId job, fmt::format_string<Args...> format, Args&&... args) {
    found.push_back({fmt::format(format, std::forward<Args>(args)...), job});
  }
};

// Workers only where there can be some, and whole gangs.
void CheckStanding(Faults& faults, const Job& job, const char* what, const Placement& placement) {
  for (const Placed& placed : placement) {
    const Node& node = faults.snapshot.nodes[placed.node];
    if (!IsThere(node.state))
      faults.OfJob(job.id, "job {}: {}: node {} is not there", job.id, what, node.name);
  }
  const int workers = NumWorkers(placement);
  if (workers < job.min_workers || workers > job.max_workers)
    faults.OfJob(job.id, "job {}: {}: {} workers, not {}..{}", job.id, what, workers,
                 job.min_workers, job.max_workers);
}

void CheckJobs(Faults& faults) {
  for (const Job& job : faults.snapshot.jobs) {
    if (job.state == JobState::kPending) {
      if (!job.placement.empty())
        faults.OfJob(job.id, "job {} is pending and has a placement", job.id);
    } else {
      CheckStanding(faults, job, "placement", job.placement);
    }
    if (job.state == JobState::kResizing)
      CheckStanding(faults, job, "target", job.target);
    else if (!job.target.empty())
      faults.OfJob(job.id, "job {} is not resizing and has a target", job.id);
  }
}

// Nodes of which more is held than they have, and more than `before`.
std::vector<SnapshotFault> OverAllocated(const Snapshot& snapshot, const check::Held& held,
                                         const check::Held& before, const char* when) {
  std::vector<SnapshotFault> found;
  for (size_t node = 0; node < held.size(); ++node) {
    const Resources& capacity = snapshot.nodes[node].capacity;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (held[node][kind] > capacity[kind] && held[node][kind] > before[node][kind])
        found.push_back(
            {fmt::format("node {}: resource {}: {} of {} taken {}", snapshot.nodes[node].name, kind,
                         held[node][kind], capacity[kind], when),
             0, static_cast<int>(node)});
  }
  return found;
}

// Of decisions about a snapshot that can be reckoned with.
void CheckWhatIsDecided(Cycle& cycle, bool snapshot_is_valid) {
  check::CheckForm(cycle);
  if (!cycle.violations.empty()) return;
  for (const SnapshotFault& fault :
       OverAllocated(cycle.snapshot, check::HeldAtOnce(cycle), check::HeldNow(cycle.snapshot),
                     "after this cycle"))
    cycle.violations.push_back(fault.what);
  check::CheckRoom(cycle);
  check::CheckQuotas(cycle);
  check::CheckRights(cycle);
  // Of a snapshot with faults nobody can say what would fit.
  if (snapshot_is_valid) check::CheckNotInVain(cycle);
}

}  // namespace

std::vector<SnapshotFault> FindFaults(const Snapshot& snapshot) {
  const Decisions none;
  Cycle cycle{.snapshot = snapshot, .decisions = none};
  CheckIndices(cycle);
  Faults faults{.snapshot = snapshot};
  for (std::string& what : cycle.violations) faults.found.push_back({std::move(what)});
  if (!faults.found.empty()) return std::move(faults.found);
  CheckJobs(faults);
  const check::Held nothing(snapshot.nodes.size());
  for (SnapshotFault& fault : OverAllocated(snapshot, check::HeldNow(snapshot), nothing, "now"))
    faults.found.push_back(std::move(fault));
  return std::move(faults.found);
}

std::vector<std::string> ValidateSnapshot(const Snapshot& snapshot) {
  std::vector<std::string> faults;
  for (SnapshotFault& fault : FindFaults(snapshot)) faults.push_back(std::move(fault.what));
  return faults;
}

std::vector<std::string> ValidateDecisions(const Snapshot& snapshot, const Decisions& decisions) {
  Cycle cycle{.snapshot = snapshot, .decisions = decisions};
  cycle.violations = ValidateSnapshot(snapshot);
  if (cycle.violations.empty()) CheckWhatIsDecided(cycle, /*snapshot_is_valid=*/true);
  return cycle.violations;
}

Validated Validate(const Snapshot& snapshot, Decisions decisions) {
  Validated validated;
  const std::vector<SnapshotFault> faults = FindFaults(snapshot);
  for (const SnapshotFault& fault : faults) {
    validated.faults.push_back(fault.what);
    if (fault.job == 0 && fault.node < 0) validated.violations.push_back(fault.what);
  }
  if (validated.violations.empty()) {
    if (!faults.empty()) WithholdFrom(snapshot, faults, decisions);
    Cycle cycle{.snapshot = snapshot, .decisions = decisions};
    CheckWhatIsDecided(cycle, faults.empty());
    validated.violations = std::move(cycle.violations);
  }
  if (!validated.violations.empty()) WithholdAll(decisions);
  validated.decisions = std::move(decisions);
  return validated;
}

}  // namespace renzan::cluster
