#include "renzan/cluster/kubernetes/controller/job_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/attempts.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

using nlohmann::json;

namespace {

Placement PlacementOf(const NamedPlacement& named, Inventory& inventory, TimeMs now) {
  Placement placement;
  for (const NodeShare& share : named)
    placement.push_back({inventory.FindOrAdd(share.node, now), share.workers});
  std::sort(placement.begin(), placement.end(),
            [](const Placed& a, const Placed& b) { return a.node < b.node; });
  return placement;
}

void Reserve(Reservation reservation, Snapshot& snapshot) {
  auto& all = snapshot.reservations;
  const auto before = [](const Reservation& a, const Reservation& b) { return a.job < b.job; };
  all.insert(std::upper_bound(all.begin(), all.end(), reservation, before), std::move(reservation));
}

// The queue's index; if there is none, adds one.
int QueueNamed(const std::string& name, Snapshot& snapshot) {
  const auto& queues = snapshot.queues;
  const auto at = std::find_if(queues.begin(), queues.end(), [&](const Queue& queue) {
    return queue.name == name && !queue.removed;
  });
  return at == queues.end() ? spec::RemovedQueue(snapshot, name)
                            : static_cast<int>(at - queues.begin());
}

// Whatever runs in a queue when it becomes a parent runs on in one without a guarantee.
void EmptyParents(Snapshot& snapshot) {
  std::set<int> parents;
  for (const Queue& queue : snapshot.queues)
    if (queue.parent) parents.insert(*queue.parent);
  for (Job& job : snapshot.jobs)
    if (parents.contains(job.queue))
      job.queue = spec::RemovedQueue(snapshot, snapshot.queues[job.queue].name);
}

}  // namespace

std::vector<spec::ParentFault> SetQueues(const std::map<std::string, QueueSpec>& specs,
                                         Snapshot& snapshot) {
  static const std::map<std::string, QueueSpec> without_any = {{"default", {}}};
  const auto& there = specs.empty() ? without_any : specs;
  auto& queues = snapshot.queues;
  std::map<std::string, std::string> parents;
  for (Queue& queue : queues)
    if (!there.contains(queue.name)) queue = {.name = queue.name, .removed = true};
  for (const auto& [name, spec] : there) {
    Queue queue{.name = name,
                .guaranteed = CapacityFrom(spec.guaranteed, snapshot),
                .rights = spec.rights,
                .fair_share = spec.fair_share};
    const Resources limit = CapacityFrom(spec.limit, snapshot);
    for (const auto& [resource, amount] : spec.limit)
      if (const int kind = KindOf(resource, snapshot); kind >= 0) queue.limit[kind] = limit[kind];
    queues[QueueNamed(name, snapshot)] = std::move(queue);
    if (!spec.parent.empty()) parents.emplace(name, spec.parent);
  }
  std::vector<spec::ParentFault> faults = spec::SetParents(parents, snapshot);
  EmptyParents(snapshot);
  return faults;
}

void ApplyPolicy(const ClusterPolicy& policy, Inventory& inventory, TimeMs now,
                 Snapshot& snapshot) {
  inventory.SetTopology(policy.topology, now);
  inventory.SetNotice(policy.notice_ms);
  for (User& user : snapshot.users) user = {.name = user.name};
  for (const auto& [ns, max_gpus] : policy.caps)
    snapshot.users[snapshot.InternUser(ns)].max_gpus = max_gpus;
  for (const auto& [ns, overrides] : policy.overrides)
    snapshot.users[snapshot.InternUser(ns)].quota_overrides = overrides;
}

// As far as the controller knows: whether its replicas could be read.
bool IsScalable(const NodePool& pool) { return At(*pool.object, {"status", "wanted"}).is_number(); }

void PutPool(const NodePool& pool, const PoolMembers& members, int overdue, Inventory& inventory,
             Snapshot& snapshot) {
  snapshot.pools[inventory.PoolNamed(pool.name)] =
      PoolFacts(pool, members, IsScalable(pool), overdue, inventory, snapshot);
}

void SortByArrival(std::vector<GangJob>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const GangJob& a, const GangJob& b) {
    return std::tuple(a.status.id == 0, a.status.id, a.created, a.uid) <
           std::tuple(b.status.id == 0, b.status.id, b.created, b.uid);
  });
}

const Queue* QueueOf(const GangJob& object, const Snapshot& snapshot) {
  for (const Queue& queue : snapshot.queues)
    if (queue.name == object.spec.queue && !queue.removed) return &queue;
  return nullptr;
}

std::string WhyItMayNotStart(const GangJob& object, const Queue* queue, const Snapshot& snapshot,
                             const NamespaceLimits& limits, const spec::Submitter& submitter,
                             int64_t pending_jobs) {
  if (queue != nullptr)
    if (std::string why = spec::WhyQueueRefuses(*queue, snapshot.queues, object.spec, submitter);
        !why.empty())
      return why;
  return WhyForbidden(limits, object.ns, object.spec, pending_jobs);
}

void ApplyHold(const GangJob& object, Job& job) {
  static const std::string why =
      "held by spec.held: `renzan job release`, or a patch to false, lets it start";
  if (object.held && job.held.empty()) job.held = why;
  if (!object.held && job.held == why) job.held.clear();
}

void Specify(const GangJob& object, Inventory& inventory, Snapshot& snapshot, Job& job) {
  const spec::JobSpec& spec = object.spec;
  job.submitted = object.created;
  job.user = snapshot.InternUser(object.ns);
  // It must not start until its end has been written.
  job.held = HasEnded(object.status.state) ? "it has ended" : object.invalid;
  // Its indices must be valid in any case. A job that waits for a missing queue counts for none.
  if (snapshot.queues.empty()) SetQueues({}, snapshot);
  job.queue = spec::RemovedQueue(snapshot, "");
  if (snapshot.worker_requests.empty()) snapshot.InternRequest({});
  if (!job.held.empty()) return;
  job.priority = spec.priority;
  job.min_workers = spec.min_workers();
  job.max_workers = spec.max_workers();
  job.checkpoints = spec.checkpoint.on_stop;
  job.preemptible = spec.preemptible && !spec.grand_challenge;
  job.quota_exempt = spec.grand_challenge;
  job.grace_ms = spec.grace_ms();
  job.max_checkpoint_interval_ms = spec.max_checkpoint_interval_ms();
  if (const Queue* queue = QueueOf(object, snapshot)) {
    job.queue = static_cast<int>(queue - snapshot.queues.data());
    if (spec::IsParent(snapshot.queues, *queue)) {
      job.queue = spec::RemovedQueue(snapshot, spec.queue);
      job.held = spec::WhyParentHolds(spec.queue);
    }
  } else {
    job.held = fmt::format("there is no queue '{}'", spec.queue);
    // What it has held since its queue existed counts for no other queue.
    if (object.status.state != RecordState::kPending)
      job.queue = spec::RemovedQueue(snapshot, spec.queue);
  }
  const std::string& level = spec.constraints.topology;
  const auto& levels = snapshot.topology_levels;
  if (!level.empty() && level != "host" &&
      std::find(levels.begin(), levels.end(), level) == levels.end())
    job.held = fmt::format("there is no topology level '{}': there are {} and host", level,
                           fmt::join(levels, ", "));
  try {
    WorkerRequest request{.per_worker = RequestFrom(object.per_worker, snapshot),
                          .required = object.node_selector,
                          .topology_level = level,
                          .topology_required = spec.constraints.topology_required};
    if (const auto label = inventory.LabelFor(object.node_filter)) request.required.insert(*label);
    job.request = snapshot.InternRequest(request);
  } catch (const Error& error) {
    job.held = error.what();
    job.request = snapshot.InternRequest({});
  }
  ApplyHold(object, job);
}

SizeApplies WhenSizeApplies(const spec::JobSpec& wanted, int workers, bool runs, bool saves) {
  if (!runs) return SizeApplies::kNextTime;
  if (wanted.min_workers() <= workers && workers <= wanted.max_workers())
    return SizeApplies::kAtOnce;
  return saves ? SizeApplies::kAfterAStop : SizeApplies::kNextTime;
}

void Restore(const GangJob& object, Inventory& inventory, TimeMs now, Snapshot& snapshot,
             Job& job) {
  const GangJobStatus& status = object.status;
  RestoreJob(status, status, PlacementOf(status.placement, inventory, now),
             PlacementOf(status.target, inventory, now), job);
  if (!status.reservation.empty() && job.state == JobState::kPending)
    Reserve({job.id, PlacementOf(status.reservation, inventory, now)}, snapshot);
  ApplyEstimates(object, job);
}

void ApplyEstimates(const GangJob& object, Job& job) {
  const GangJobStatus& status = object.status;
  job.run_time = status.run_time;
  job.checkpoint_cost_ms = status.checkpoint_cost.value_or(Job{}.checkpoint_cost_ms);
  job.expected_end.reset();
  if (const TimeMs timeout_ms = object.spec.timeout_ms();
      job.state != JobState::kPending && timeout_ms > 0)
    job.expected_end = job.started + timeout_ms - status.run_ms;
}

}  // namespace renzan::cluster::kubernetes
