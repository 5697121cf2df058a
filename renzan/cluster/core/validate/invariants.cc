#include "renzan/cluster/core/validate/invariants.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/validate/check.h"
#include "renzan/cluster/core/validate/withhold.h"

namespace renzan::cluster {
namespace {

using check::CheckContext;

bool InRange(int index, size_t size) { return index >= 0 && index < static_cast<int>(size); }

// The snapshot in which requests say which nodes their jobs may use.
class MayUse {
 public:
  explicit MayUse(const Snapshot& observed) : observed_(observed) {
    if (HasAvoidance(observed)) avoiding_ = WithAvoidance(observed);
  }
  const Snapshot& snapshot() const { return avoiding_ ? *avoiding_ : observed_; }

 private:
  const Snapshot& observed_;
  std::optional<Snapshot> avoiding_;
};

// Whether the queue's parents exist and are not too many.
bool ParentsEnd(const Snapshot& snapshot, const Queue& queue) {
  const Queue* at = &queue;
  for (int level = 1; level < Queue::kMostLevels; ++level) {
    if (!at->parent) return true;
    if (!InRange(*at->parent, snapshot.queues.size())) return false;
    at = &snapshot.queues[*at->parent];
  }
  return !at->parent;
}

// Checks the snapshot's indices and numbers, on which everything else relies.
void CheckIndices(CheckContext& context) {
  const Snapshot& snapshot = context.snapshot;
  for (size_t node = 0; node < snapshot.nodes.size(); ++node) {
    const int pool = snapshot.nodes[node].pool;
    if (pool != -1 && !InRange(pool, snapshot.pools.size()))
      context.Report("node {} ({}): pool {} does not exist", node, snapshot.nodes[node].name, pool);
  }
  for (const Queue& queue : snapshot.queues) {
    if (queue.parent && !ParentsEnd(snapshot, queue))
      context.Report("queue {}: its parent {} does not exist, or its parents do not end after {}",
                     queue.name, *queue.parent, Queue::kMostLevels - 1);
    if (!queue.fair_share) continue;
    if (queue.fair_share->half_life <= 0)
      context.Report("queue {}: its half-life is {} ms", queue.name, queue.fair_share->half_life);
    for (const UsedLately& used : queue.fair_share->used)
      if (!InRange(used.user, snapshot.users.size()) || !(used.seconds >= 0))
        context.Report("queue {}: user {}, who does not exist, or {} seconds", queue.name,
                       used.user, used.seconds);
  }
  for (const Reservation& reservation : snapshot.reservations)
    if (const std::string fault = check::FormFault(snapshot, reservation.placement); !fault.empty())
      context.Report("reservation of job {}: {}", reservation.job, fault);
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const Job& job = snapshot.jobs[i];
    if (i > 0 && snapshot.jobs[i - 1].id >= job.id)
      context.Report("job {} is not in order of id", job.id);
    if (!InRange(job.request, snapshot.worker_requests.size()) ||
        !InRange(job.queue, snapshot.queues.size()) || !InRange(job.user, snapshot.users.size()))
      context.Report("job {}: its worker request, queue or user does not exist", job.id);
    if (job.min_workers < 1 || job.max_workers < job.min_workers)
      context.Report("job {}: {}..{}", job.id, job.min_workers, Counted(job.max_workers, "worker"));
    for (const Placement* placement : {&job.placement, &job.target})
      if (const std::string fault = check::FormFault(snapshot, *placement); !fault.empty())
        context.Report("job {}: {}: {}", job.id, placement == &job.target ? "target" : "placement",
                       fault);
  }
}

// Faults of single jobs and nodes; invalid indices are found earlier.
struct Faults {
  const Snapshot& snapshot;
  std::vector<SnapshotFault> found;

  template <typename... Args>
  void OfJob(JobId job, fmt::format_string<Args...> format, Args&&... args) {
    found.push_back({fmt::format(format, std::forward<Args>(args)...), job});
  }
};

// Checks that gangs are complete and run on nodes that are up.
void CheckGang(Faults& faults, const Job& job, const char* what, const Placement& placement) {
  for (const Placed& placed : placement) {
    const Node& node = faults.snapshot.nodes[placed.node];
    if (!IsThere(node.state))
      faults.OfJob(job.id, "job {}: {}: node {} is not up", job.id, what, node.name);
  }
  const int workers = NumWorkers(placement);
  if (workers < job.min_workers || workers > job.max_workers)
    faults.OfJob(job.id, "job {}: {}: {}, not {}..{}", job.id, what, Counted(workers, "worker"),
                 job.min_workers, job.max_workers);
}

void CheckJobs(Faults& faults) {
  for (const Job& job : faults.snapshot.jobs) {
    if (job.quota_exempt && job.preemptible)
      faults.OfJob(job.id, "job {} is exempt from quotas, but preemptible", job.id);
    if (job.state == JobState::kPending) {
      if (!job.placement.empty())
        faults.OfJob(job.id, "job {} is pending, but has a placement", job.id);
    } else {
      CheckGang(faults, job, "placement", job.placement);
    }
    if (job.state == JobState::kResizing)
      CheckGang(faults, job, "target", job.target);
    else if (!job.target.empty())
      faults.OfJob(job.id, "job {} is not resizing, but has a target", job.id);
  }
}

// Nodes on which more is held than their capacity, and more than `before`.
std::vector<SnapshotFault> OverAllocated(const Snapshot& snapshot, const check::Held& held,
                                         const check::Held& before, const char* when) {
  std::vector<SnapshotFault> found;
  for (size_t node = 0; node < held.size(); ++node) {
    const Resources& capacity = snapshot.nodes[node].capacity;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (held[node][kind] > capacity[kind] && held[node][kind] > before[node][kind])
        found.push_back(
            {fmt::format("node {}: resource {}: {} of {} used {}", snapshot.nodes[node].name, kind,
                         held[node][kind], capacity[kind], when),
             0, static_cast<int>(node)});
  }
  return found;
}

// The last decision that puts workers on the node.
JobId LastToCome(const CheckContext& context, int node) {
  JobId last = 0;
  const auto consider = [&](JobId job, const Placement& placement) {
    for (const Placed& placed : placement)
      if (placed.node == node) last = job;
  };
  for (const Resize& resize : context.decisions.resizes) consider(resize.job, resize.target);
  for (const Start& start : context.decisions.starts) consider(start.job, start.placement);
  return last;
}

void CheckDecisions(const Snapshot& observed, CheckContext& context, bool snapshot_is_valid) {
  check::CheckForm(context);
  if (!context.violations.empty()) return;
  check::CheckAvoidance(observed, context);
  for (const SnapshotFault& fault :
       OverAllocated(context.snapshot, check::HeldAfterDecisions(context),
                     check::HeldNow(context.snapshot), "after this cycle"))
    context.ReportFor(LastToCome(context, fault.node), "{}", fault.what);
  check::CheckRoom(context);
  check::CheckQuotas(context);
  check::CheckRights(context);
  // With faults in the snapshot it is unknown what would fit.
  if (snapshot_is_valid) check::CheckPreemptorsFit(context);
}

std::vector<std::string> TextsOf(const std::vector<check::Violation>& violations) {
  std::vector<std::string> texts;
  for (const check::Violation& violation : violations) texts.push_back(violation.what);
  return texts;
}

struct Checked {
  std::vector<std::string> violations;  // other than those that the faults explain
  bool rest_is_valid = true;
};

// Withholds invalid decisions until the rest is valid: others may rely on a withheld one (on the
// quota that a stop would have released).
Checked CheckAndWithhold(const Snapshot& observed, bool has_faults, Decisions& decisions) {
  const MayUse may_use(observed);
  Checked checked;
  while (true) {
    CheckContext context{.snapshot = may_use.snapshot(), .decisions = decisions};
    CheckDecisions(observed, context, !has_faults);
    if (context.violations.empty()) return checked;
    std::set<JobId> jobs;
    for (const check::Violation& violation : context.violations) jobs.insert(violation.job);
    checked.rest_is_valid = !jobs.contains(0) && WithholdFor(jobs, decisions);
    // A consequence of a withheld decision is not a violation of its own.
    const bool explained =
        has_faults && checked.rest_is_valid &&
        std::all_of(context.violations.begin(), context.violations.end(),
                    [](const check::Violation& violation) { return violation.may_follow; });
    if (checked.violations.empty() && !explained) checked.violations = TextsOf(context.violations);
    if (!checked.rest_is_valid) return checked;
  }
}

}  // namespace

std::vector<SnapshotFault> FindFaults(const Snapshot& snapshot) {
  const Decisions none;
  CheckContext context{.snapshot = snapshot, .decisions = none};
  CheckIndices(context);
  Faults faults{.snapshot = snapshot};
  for (check::Violation& each : context.violations) faults.found.push_back({std::move(each.what)});
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
  std::vector<std::string> faults = ValidateSnapshot(snapshot);
  if (!faults.empty()) return faults;
  const MayUse may_use(snapshot);
  CheckContext context{.snapshot = may_use.snapshot(), .decisions = decisions};
  CheckDecisions(snapshot, context, /*snapshot_is_valid=*/true);
  // Not in Validate(): to withhold decisions would not give the job its room.
  if (context.violations.empty()) check::CheckNeedlessWaits(context);
  if (context.violations.empty()) check::CheckKeptRoom(context);
  if (context.violations.empty()) check::CheckFairShare(context);
  return TextsOf(context.violations);
}

Validated Validate(const Snapshot& snapshot, Decisions decisions) {
  Validated validated;
  const std::vector<SnapshotFault> faults = FindFaults(snapshot);
  for (const SnapshotFault& fault : faults) {
    validated.faults.push_back(fault.what);
    if (fault.job == 0 && fault.node < 0) validated.violations.push_back(fault.what);
  }
  bool rest_is_valid = validated.violations.empty();
  if (rest_is_valid) {
    if (!faults.empty()) WithholdFrom(snapshot, faults, decisions);
    Checked checked = CheckAndWithhold(snapshot, !faults.empty(), decisions);
    validated.violations = std::move(checked.violations);
    rest_is_valid = checked.rest_is_valid;
  }
  if (!rest_is_valid) WithholdAll(snapshot, decisions);
  validated.decisions = std::move(decisions);
  return validated;
}

}  // namespace renzan::cluster
