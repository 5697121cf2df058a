// From configuration files to the scheduler's input.

#include <algorithm>
#include <cmath>
#include <set>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/fair_share.h"
#include "renzan/cluster/spec/queue_parents.h"

namespace renzan::cluster::spec {
namespace {

using Counts = std::map<std::string, int64_t>;

int64_t Millicores(double cores) { return std::llround(cores * 1000); }

// The index of a named resource, or -1.
int KindOf(const Snapshot& snapshot, const std::string& name) {
  const auto& names = snapshot.resource_names;
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

void SetOther(const Snapshot& snapshot, const Counts& other, const std::string& whose,
              Resources& resources) {
  for (const auto& [name, count] : other) {
    const int kind = KindOf(snapshot, name);
    if (kind < 0) {
      const std::string nearest = NearestName(name, snapshot.resource_names);
      Fail(ErrorCode::kConfig, "{} names the resource '{}', which no pool of nodes has: {}", whose,
           name,
           nearest.empty() ? fmt::format("there are {}", fmt::join(snapshot.resource_names, ", "))
                           : fmt::format("did you mean '{}'?", nearest));
    }
    resources[kind] = count;
  }
}

Resources ToResources(const Snapshot& snapshot, const JobSpec::PerWorker& config,
                      const std::string& whose) {
  Resources resources;
  resources[kCpu] = Millicores(config.cpu);
  resources[kMemory] = ParseMebibytes(config.memory);
  resources[kGpu] = config.gpu;
  SetOther(snapshot, config.other, whose, resources);
  return resources;
}

// Kinds that `quota` does not mention keep their value in `resources`.
void SetQuota(const Snapshot& snapshot, const ClusterConfig::QuotaConfig& quota,
              const std::string& whose, Resources& resources) {
  if (quota.cpu >= 0) resources[kCpu] = Millicores(quota.cpu);
  if (!quota.memory.empty()) resources[kMemory] = ParseMebibytes(quota.memory);
  if (quota.gpu >= 0) resources[kGpu] = quota.gpu;
  SetOther(snapshot, quota.other, whose, resources);
}

void NameResources(const ClusterConfig& config, Snapshot& snapshot) {
  std::set<std::string> names;
  for (const auto& [pool, settings] : config.pools)
    for (const auto& [name, count] : settings.resources.other) names.insert(name);
  auto& all = snapshot.resource_names;
  all.insert(all.end(), names.begin(), names.end());
  if (all.size() > kMaxResources)
    Fail(ErrorCode::kConfig, "pools have {} named resources ({}), but at most {} are supported",
         names.size(), fmt::join(names, ", "), kMaxResources - kFirstNamedResource);
}

Pool MakePool(const Snapshot& snapshot, const std::string& name,
              const ClusterConfig::PoolConfig& config) {
  const std::optional<Range> nodes = TryParseRange(config.nodes);
  CHECK(nodes);  // Describe() has checked it
  Pool pool{.name = name,
            .capacity = ToResources(snapshot, config.resources, "pool " + name),
            .labels = config.labels};
  for (const auto& [level, count] : config.domains) pool.domains[level] = static_cast<int>(count);
  pool.spot = config.spot;
  pool.min_nodes = nodes->min;
  pool.max_nodes = nodes->max;
  pool.price_per_hour = config.price_per_hour;
  pool.boot_ms = TryParseMilliseconds(config.boot).value_or(0);
  pool.idle_ms = TryParseMilliseconds(config.idle).value_or(0);
  pool.interruptions_per_hour = config.interruptions_per_hour;
  return pool;
}

Queue MakeQueue(const Snapshot& snapshot, const std::string& name,
                const ClusterConfig::QueueConfig& config) {
  Queue queue{.name = name, .rights = config.rights};
  SetQuota(snapshot, config.guaranteed, fmt::format("queue {}: guaranteed", name),
           queue.guaranteed);
  SetQuota(snapshot, config.limit, fmt::format("queue {}: limit", name), queue.limit);
  queue.fair_share = FairShareOf(config.fair_share_half_life);
  for (size_t kind = 0; kind < snapshot.resource_names.size(); ++kind)
    if (queue.guaranteed[kind] > queue.limit[kind])
      Fail(ErrorCode::kConfig, "queue {}: {} {} is guaranteed, more than its limit of {}", name,
           queue.guaranteed[kind], snapshot.resource_names[kind], queue.limit[kind]);
  return queue;
}

std::string UnitOf(int kind) {
  return kind == kCpu ? " thousandths of a core" : kind == kMemory ? " MiB" : "";
}

[[noreturn]] void FailOnParent(const ParentFault& fault, const Snapshot& snapshot) {
  switch (fault.kind) {
    case ParentFault::Kind::kNoQueue:
      Fail(ErrorCode::kConfig, "queue {}: its parent {} is no queue: add it to queues ({}: {{}})",
           fault.queue, fault.parent, fault.parent);
    case ParentFault::Kind::kCycle:
      Fail(ErrorCode::kConfig,
           "queue {}: its parents come back to it ({}): leave out the parent of one of them",
           fault.queue, fault.above);
    case ParentFault::Kind::kTooMany:
      Fail(ErrorCode::kConfig,
           "queue {}: {} and the parents above it are more than {}: leave out the parent of one",
           fault.queue, fault.parent, Queue::kMostLevels - 1);
    case ParentFault::Kind::kTakesJobs:
      Fail(ErrorCode::kConfig,
           "queue {} is a parent, and takes no jobs itself: give its limit, fair_share, members, "
           "max_priority and not_preemptible to its queues",
           fault.parent);
    case ParentFault::Kind::kTooLittle:
      break;
  }
  Fail(ErrorCode::kConfig,
       "queue {}: {}{} of {} are guaranteed, but {} to its queues together: guarantee it as much, "
       "or leave that out",
       fault.queue, fault.given, UnitOf(fault.resource), snapshot.resource_names[fault.resource],
       fault.of_queues);
}

void RequireParents(const ClusterConfig& config, Snapshot& snapshot) {
  std::map<std::string, std::string> named;
  for (const auto& [name, queue] : config.queues)
    if (!queue.parent.empty()) named.emplace(name, queue.parent);
  const std::vector<ParentFault> faults = SetParents(named, snapshot);
  if (!faults.empty()) FailOnParent(faults.front(), snapshot);
}

// Queues must not be guaranteed more than the pools have at their maximum.
void CheckGuarantees(const Snapshot& snapshot) {
  Resources most, guaranteed;
  for (const Pool& pool : snapshot.pools) most += pool.capacity * pool.max_nodes;
  for (const Queue& queue : snapshot.queues)
    if (!queue.parent) guaranteed += queue.guaranteed;
  for (size_t kind = 0; kind < snapshot.resource_names.size(); ++kind) {
    if (guaranteed[kind] <= most[kind]) continue;
    Fail(ErrorCode::kConfig,
         "queues are guaranteed {}{} of {} together, but the pools have at most {}: guarantee "
         "less or add nodes",
         guaranteed[kind], UnitOf(static_cast<int>(kind)), snapshot.resource_names[kind],
         most[kind]);
  }
}

[[noreturn]] void FailUnknown(ErrorCode code, const std::string& what, const std::string& name,
                              const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  Fail(code, "there is no {} '{}': {}", what, name,
       nearest.empty() ? fmt::format("choose one of {}", fmt::join(known, ", "))
                       : fmt::format("did you mean '{}'?", nearest));
}

int QueueIndex(const Snapshot& snapshot, const std::string& name) {
  std::vector<std::string> names;
  for (const Queue& queue : snapshot.queues) {
    if (queue.name == name) return static_cast<int>(names.size());
    names.push_back(queue.name);
  }
  FailUnknown(ErrorCode::kNoInput, "queue", name, names);
}

WorkerRequest MakeRequest(const Snapshot& snapshot, const JobSpec& spec) {
  WorkerRequest request{.per_worker = ToResources(snapshot, spec.resources, "the job"),
                        .required = spec.constraints.required,
                        .preferred = spec.constraints.preferred,
                        .topology_level = spec.constraints.topology,
                        .topology_required = spec.constraints.topology_required,
                        .excluded_nodes = spec.constraints.exclude_nodes};
  std::vector<std::string>& excluded = request.excluded_nodes;
  std::sort(excluded.begin(), excluded.end());
  excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
  std::vector<std::string> levels = snapshot.topology_levels;
  levels.push_back("host");
  if (!request.topology_level.empty() &&
      std::find(levels.begin(), levels.end(), request.topology_level) == levels.end())
    FailUnknown(ErrorCode::kConfig, "topology level", request.topology_level, levels);
  return request;
}

}  // namespace

Snapshot MakeSnapshot(const ClusterConfig& config, TimeMs now) {
  Snapshot snapshot;
  snapshot.now = now;
  snapshot.topology_levels = config.topology;
  NameResources(config, snapshot);
  for (const auto& [name, pool] : config.pools)
    snapshot.pools.push_back(MakePool(snapshot, name, pool));
  for (const auto& [name, queue] : config.queues)
    snapshot.queues.push_back(MakeQueue(snapshot, name, queue));
  if (snapshot.queues.empty()) snapshot.queues.push_back({.name = "default"});
  RequireParents(config, snapshot);
  CheckGuarantees(snapshot);
  for (const auto& [name, user] : config.users)
    snapshot.users.push_back(
        {.name = name, .max_gpus = user.max_gpus < 0 ? kUnlimited : user.max_gpus});
  if (config.budget_per_hour >= 0) snapshot.budget_per_hour = config.budget_per_hour;
  for (int pool = 0; pool < static_cast<int>(snapshot.pools.size()); ++pool)
    for (int number = 0; number < snapshot.pools[pool].min_nodes; ++number)
      snapshot.nodes.push_back(MakeNode(snapshot, pool, number));
  return snapshot;
}

std::optional<Resources> RoundedUp(const Snapshot& snapshot, const WorkerClasses& offered,
                                   const Resources& worker) {
  JobSpec spec;
  spec.resources = {.cpu = static_cast<double>(worker[kCpu]) / 1000,
                    .memory = fmt::format("{}MiB", worker[kMemory]),
                    .gpu = worker.gpu()};
  for (size_t kind = kFirstNamedResource; kind < snapshot.resource_names.size(); ++kind)
    if (const int64_t amount = worker[static_cast<int>(kind)]; amount > 0)
      spec.resources.other[snapshot.resource_names[kind]] = amount;
  try {
    RoundUpToClass(offered, "the job", spec);
    return ToResources(snapshot, spec.resources, "the job");
  } catch (const Error&) {
    return std::nullopt;
  }
}

void CheckSubmission(const Snapshot& snapshot, const JobSpec& spec, const Submitter& submitter) {
  for (const Queue& queue : snapshot.queues)
    if (queue.name == spec.queue)
      if (const std::string why = WhyQueueRefuses(queue, snapshot.queues, spec, submitter);
          !why.empty())
        Fail(ErrorCode::kNoPermission, "{}", why);
  std::vector<std::string> names;
  for (const Node& node : snapshot.nodes) names.push_back(node.name);
  for (const std::string& name : spec.constraints.exclude_nodes) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) FailUnknown(ErrorCode::kNoInput, "node", name, names);
    const int pool = snapshot.nodes[at - names.begin()].pool;
    if (pool >= 0 && snapshot.pools[pool].min_nodes < snapshot.pools[pool].max_nodes)
      Fail(ErrorCode::kConfig,
           "constraints.exclude_nodes has {}, of pool {}, whose nodes are bought and returned: the "
           "next one of that name is another machine; exclude the pool by a label "
           "(constraints.required) instead",
           name, snapshot.pools[pool].name);
  }
}

Job MakeJob(Snapshot& snapshot, const JobSpec& spec, const std::string& user, JobId id,
            TimeMs now) {
  int queue = QueueIndex(snapshot, spec.queue);
  const bool is_parent = IsParent(snapshot.queues, snapshot.queues[queue]);
  if (is_parent) queue = RemovedQueue(snapshot, spec.queue);
  const WorkerRequest request = MakeRequest(snapshot, spec);
  Job job{.id = id, .request = snapshot.InternRequest(request), .queue = queue};
  job.user = snapshot.InternUser(user);
  job.priority = spec.priority;
  job.min_workers = spec.min_workers();
  job.max_workers = spec.max_workers();
  job.checkpoints = spec.checkpoint.on_stop;
  job.preemptible = spec.preemptible && !spec.grand_challenge;
  job.quota_exempt = spec.grand_challenge;
  job.submitted = job.waiting_since = now;
  job.grace_ms = spec.grace_ms();
  job.max_checkpoint_interval_ms = spec.max_checkpoint_interval_ms();
  if (is_parent)
    job.held = WhyParentHolds(spec.queue);
  else if (snapshot.queues[queue].removed)
    job.held = fmt::format("the configuration no longer has queue {}", spec.queue);
  return job;
}

}  // namespace renzan::cluster::spec
