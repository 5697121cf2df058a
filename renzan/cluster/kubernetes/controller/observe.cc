#include "renzan/cluster/kubernetes/controller/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/controller/namespace_rights.h"
#include "renzan/cluster/kubernetes/controller/pod_book.h"
#include "renzan/cluster/kubernetes/controller/use_book.h"
#include "renzan/cluster/kubernetes/objects/node.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"
#include "renzan/cluster/kubernetes/objects/pod.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

// If nobody has stated what a pool's machines are like, takes them from its nodes.
void CompletePools(Snapshot& snapshot) {
  std::vector<bool> seen(snapshot.pools.size());
  for (const Node& node : snapshot.nodes) {
    if (node.pool < 0 || !IsThere(node.state)) continue;
    Pool& pool = snapshot.pools[node.pool];
    if (!seen[node.pool] && pool.capacity == Resources{}) {
      pool.capacity = node.capacity;
      pool.labels = node.labels;
      seen[node.pool] = true;
    } else if (seen[node.pool]) {
      for (int kind = 0; kind < kMaxResources; ++kind)
        pool.capacity[kind] = std::max(pool.capacity[kind], node.capacity[kind]);
      // Labels that all nodes share: not the names of hosts.
      std::erase_if(pool.labels, [&](const auto& label) {
        const auto at = node.labels.find(label.first);
        return at == node.labels.end() || at->second != label.second;
      });
    }
  }
}

// Puts the pool as the controller has it, with the machines that were bought and are not nodes yet.
void PutWhole(const NodePool& pool, const PoolMembers& members, Inventory& inventory, TimeMs now,
              Snapshot& snapshot) {
  const auto wanted = static_cast<int>(NumberAt(*pool.object, {"status", "wanted"}));
  const std::vector<TimeMs> booting = StillBooting(pool.booting_since, wanted, members.nodes, now);
  const int overdue = CountOverdue(pool, booting, now);
  PutPool(pool, members, overdue, inventory, snapshot);
  const int index = inventory.PoolNamed(pool.name);
  const Pool& facts = snapshot.pools[index];
  for (size_t at = overdue; at < booting.size(); ++at)
    snapshot.nodes.push_back({.name = fmt::format("{}/booting-{}", pool.name, at - overdue + 1),
                              .pool = index,
                              .capacity = facts.capacity,
                              .labels = facts.labels,
                              .state = NodeState::kBooting,
                              .until = booting[at] + facts.boot_ms,
                              .idle_since = booting[at],
                              .spot = facts.spot});
}

}  // namespace

Observed Observe(ClusterObjects objects, const ClusterPolicy& policy, TimeMs now) {
  Observed observed{.jobs = std::move(objects.jobs)};
  Snapshot& snapshot = observed.snapshot;
  snapshot.now = now;
  Inventory inventory(snapshot);
  ApplyPolicy(policy, inventory, now, snapshot);
  std::vector<NodePool> pools;
  for (const json& pool : objects.pools)
    pools.push_back(NodePoolFrom(std::make_shared<const json>(pool)));
  // Pools first, since they say whether nodes are spot.
  for (const NodePool& pool : pools) PutPool(pool, {}, 0, inventory, snapshot);
  PodBook pods;
  for (const auto& pod : objects.pods) pods.Put(PodFrom(pod));
  std::map<std::string, QueueSpec> queues;
  std::map<std::string, const json*> statuses;  // of queues
  for (const json& queue : objects.queues) {
    const std::string name = TextAt(queue, {"metadata", "name"});
    queues[name] = HoldingQueueSpec(queue);
    statuses[name] = &At(queue, {"status"});
  }
  for (const auto& node : objects.nodes) inventory.Put(NodeFrom(node), now);

  for (const GangJob& job : observed.jobs)
    if (HasEnded(job.status.state)) observed.ended.Put(job);
  std::erase_if(observed.jobs, [](const GangJob& job) { return HasEnded(job.status.state); });
  SortByArrival(observed.jobs);
  std::map<std::string, int> attempts;  // of jobs that have workers, by uid
  for (const GangJob& job : observed.jobs)
    if (job.status.state != RecordState::kPending) attempts[job.uid] = job.status.attempts - 1;
  const auto is_worker = [&](const Pod& pod) {
    const auto at = attempts.find(pod.job_uid);
    return at != attempts.end() && at->second == pod.attempt;
  };
  // First the kinds of resources that nodes have, then what jobs hold of them.
  const std::set<std::string> nodes = inventory.TakeTouched();
  inventory.Refresh(nodes, pods, is_worker);
  SetQueues(queues, snapshot);
  JobId last = 0;
  std::map<int, int64_t> pending;  // by user
  for (GangJob& object : observed.jobs) {
    GangJobStatus& status = object.status;
    // Two leaders may have assigned a number twice.
    if (status.id <= last) {
      if (status.id == 0) status.waiting_since = object.created;
      status.id = last + 1;
    }
    last = status.id;
    Job job{.id = status.id};
    Specify(object, inventory, snapshot, job);
    Restore(object, inventory, now, snapshot, job);
    job.run_time_now = observed.ended.Predict(object);
    // In order of submission, as the controller does.
    if (job.state == JobState::kPending && job.held.empty()) {
      spec::Submitter submitter = SubmitterOf(policy.limits, object.ns);
      if (const auto at = statuses.find(object.spec.queue); at != statuses.end())
        submitter.checked = WasSubmitterChecked(*at->second, object.entered());
      job.held = WhyItMayNotStart(object, &snapshot.queues[job.queue], snapshot, policy.limits,
                                  submitter, pending[job.user]);
      if (job.held.empty() && status.message.starts_with(kLacksRight)) job.held = status.message;
      pending[job.user] += job.held.empty() ? 1 : 0;
    }
    snapshot.jobs.push_back(std::move(job));
  }
  inventory.Refresh(nodes, pods, is_worker);
  // By now the nodes' resources and the jobs' requests are known.
  auto members = MembersOfPools(inventory, snapshot);
  for (const NodePool& pool : pools) PutWhole(pool, members[pool.name], inventory, now, snapshot);
  snapshot.budget_per_hour = BudgetLeft(policy.budget_per_hour, members, snapshot);
  CompletePools(snapshot);
  UseBook use;
  for (const auto& [name, status] : statuses) use.Recover(name, *status);
  use.Count(now, snapshot);
  for (const auto& [name, node] : inventory.known()) observed.nodes.emplace(name, node);
  observed.pools = std::move(pools);
  return observed;
}

void KeepOut(const Observed& observed, const NodeFilter& filter, Snapshot& snapshot, Job& job) {
  const std::pair<std::string, std::string> label = {"renzan.dev/admits-imagined",
                                                     "pods with its tolerations and node affinity"};
  std::vector<bool> admits(snapshot.pools.size(), true);
  for (size_t pool = 0; pool < snapshot.pools.size(); ++pool) {
    // Uses what is known of its nodes, if nobody has stated what a new one would be like.
    const std::string& name = snapshot.pools[pool].name;
    const auto stated = std::find_if(observed.pools.begin(), observed.pools.end(),
                                     [&](const NodePool& each) { return each.name == name; });
    if (stated != observed.pools.end() && stated->scale) {
      admits[pool] = filter.Admits("", snapshot.pools[pool].labels, stated->taints);
      continue;
    }
    for (const auto& [node, facts] : observed.nodes)
      if (const auto at = facts.labels.find(kPoolLabel);
          at != facts.labels.end() && at->second == name)
        admits[pool] = admits[pool] && filter.Admits(node, facts.labels, facts.taints);
  }
  std::vector<bool> admitted;
  for (const Node& node : snapshot.nodes) {
    const auto known = observed.nodes.find(node.name);
    admitted.push_back(known != observed.nodes.end()
                           ? filter.Admits(node.name, known->second.labels, known->second.taints)
                           : node.pool < 0 || admits[node.pool]);
  }
  const auto all = [](const std::vector<bool>& each) {
    return std::find(each.begin(), each.end(), false) == each.end();
  };
  if (all(admits) && all(admitted)) return;
  for (size_t pool = 0; pool < admits.size(); ++pool)
    if (admits[pool]) snapshot.pools[pool].labels.insert(label);
  for (size_t node = 0; node < admitted.size(); ++node)
    if (admitted[node]) snapshot.nodes[node].labels.insert(label);
  WorkerRequest request = snapshot.worker_requests[job.request];
  request.required.insert(label);
  job.request = snapshot.InternRequest(request);
}

}  // namespace renzan::cluster::kubernetes
