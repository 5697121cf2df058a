#include "renzan/cluster/spec/cluster_documents.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/order/queue_tree.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/spec/node_state.h"

namespace renzan::cluster::spec {
namespace {

using Json = nlohmann::ordered_json;

// Omits unlimited amounts.
Json AmountsJson(const Snapshot& snapshot, const Resources& resources) {
  Json out = Json::object();
  for (size_t kind = 0; kind < snapshot.resource_names.size(); ++kind) {
    const int64_t amount = resources[static_cast<int>(kind)];
    if (amount == kUnlimited) continue;
    const std::string& name = snapshot.resource_names[kind];
    out[name] = kind == kCpu ? Json(static_cast<double>(amount) / 1000) : Json(amount);
  }
  return out;
}

Json ResourcesJson(const Resources& resources) {
  return {{"cpu", static_cast<double>(resources[kCpu]) / 1000},
          {"memory_mib", resources[kMemory]},
          {"gpu", resources.gpu()}};
}

// A node that the configuration no longer has, after its last worker has ended: the daemon forgets
// it when it is started again.
bool IsForgotten(const Node& node) {
  return node.pool < 0 && node.state == NodeState::kGone && node.capacity == Resources();
}

Json AvoidedByJson(const Snapshot& snapshot, const Node& node) {
  Json users = Json::array();
  for (const User& user : snapshot.users)
    for (const FailingNode& failing : user.failing_on)
      if (failing.node == node.name && failing.latest + kAvoidMs > snapshot.now)
        users.push_back({{"user", user.name},
                         {"failed_jobs", failing.jobs},
                         {"until", failing.latest + kAvoidMs}});
  return users;
}

Json NodeJson(const Snapshot& snapshot, int index) {
  const Node& node = snapshot.nodes[index];
  Json jobs = Json::array();
  for (const Job& job : snapshot.jobs)
    if (IsOn(job.placement, index)) jobs.push_back(job.id);
  return {{"name", node.name},
          {"pool", node.pool < 0 ? Json() : Json(snapshot.pools[node.pool].name)},
          {"state", NameOf(node.state)},
          {"until", node.until == kNever ? Json() : Json(node.until)},
          {"reason", node.reason.empty() ? Json() : Json(node.reason)},
          {"avoided_by", AvoidedByJson(snapshot, node)},
          {"spot", node.spot},
          {"labels", node.labels},
          {"capacity", ResourcesJson(node.capacity)},
          {"used", ResourcesJson(UsedOn(snapshot, index))},
          {"jobs", jobs}};
}

struct Totals {
  std::map<std::string, int> nodes = {{"ready", 0}, {"draining", 0}, {"booting", 0}, {"gone", 0}};
  Resources capacity, used;
  std::vector<int64_t> gpus_by_user;
  std::vector<int> by_pool;  // existing nodes
};

Totals Sum(const Snapshot& snapshot) {
  Totals totals;
  totals.gpus_by_user.resize(snapshot.users.size());
  totals.by_pool.resize(snapshot.pools.size());
  for (const Node& node : snapshot.nodes) {
    if (IsForgotten(node)) continue;
    ++totals.nodes[NameOf(node.state)];
    const bool there = IsThere(node.state);
    if (there) totals.capacity += node.capacity;
    if (there && node.pool >= 0) ++totals.by_pool[node.pool];
  }
  for (const Job& job : snapshot.jobs) {
    const Resources used =
        snapshot.worker_requests[job.request].per_worker * NumWorkers(job.placement);
    totals.used += used;
    totals.gpus_by_user[job.user] += used.gpu();
  }
  return totals;
}

Json MembersJson(const std::optional<QueueMembers>& members) {
  if (!members) return nullptr;
  return {
      {"users", members->users}, {"groups", members->groups}, {"namespaces", members->namespaces}};
}

Json QueueJson(const Snapshot& snapshot, const QueueUse& use, size_t index, int64_t max_priority) {
  const Queue& queue = snapshot.queues[index];
  return {{"name", queue.name},
          {"removed", queue.removed},
          {"parent", queue.parent ? Json(snapshot.queues[*queue.parent].name) : Json()},
          {"guaranteed", AmountsJson(snapshot, queue.guaranteed)},
          {"limit", AmountsJson(snapshot, queue.limit)},
          {"used", AmountsJson(snapshot, use.used)},
          {"borrowed", AmountsJson(snapshot, use.borrowed)},
          {"pending", use.pending},
          {"running", use.running},
          {"members", MembersJson(queue.rights.members)},
          {"max_priority", queue.rights.max_priority.value_or(max_priority)},
          {"not_preemptible", !queue.rights.only_preemptible}};
}

}  // namespace

std::vector<QueueUse> UseOfQueues(const Snapshot& snapshot) {
  std::vector<QueueUse> queues(snapshot.queues.size());
  std::vector<Resources> exempt(snapshot.queues.size());  // what quotas do not count
  for (const Job& job : snapshot.jobs) {
    const auto add = [&](QueueUse& use) {
      use.used += snapshot.worker_requests[job.request].per_worker * NumWorkers(job.placement);
      ++(job.placement.empty() ? use.pending : use.running);
    };
    const std::vector<int> lineage = LineageOf(snapshot, job.queue);
    for (const int queue : lineage) add(queues[queue]);
    if (!job.quota_exempt) continue;
    const Resources used =
        snapshot.worker_requests[job.request].per_worker * NumWorkers(job.placement);
    for (const int queue : lineage) exempt[queue] += used;
  }
  for (const int kind : GuaranteedKinds(snapshot))
    for (size_t queue = 0; queue < queues.size(); ++queue)
      queues[queue].borrowed[kind] =
          std::max<int64_t>(0, queues[queue].used[kind] - exempt[queue][kind] -
                                   snapshot.queues[queue].guaranteed[kind]);
  return queues;
}

Json NodesDocument(const Snapshot& snapshot) {
  Json nodes = Json::array();
  for (int node = 0; node < static_cast<int>(snapshot.nodes.size()); ++node)
    if (!IsForgotten(snapshot.nodes[node])) nodes.push_back(NodeJson(snapshot, node));
  return {{"nodes", nodes}};
}

Json UseDocument(const Snapshot& snapshot, int64_t max_priority) {
  const Totals totals = Sum(snapshot);
  Json out = {{"nodes", totals.nodes}};
  const Json capacity = AmountsJson(snapshot, totals.capacity);
  const Json used = AmountsJson(snapshot, totals.used);
  out["resources"] = Json::array();
  for (const auto& [name, amount] : capacity.items())
    out["resources"].push_back({{"name", name}, {"capacity", amount}, {"used", used[name]}});
  out["pools"] = Json::array();
  for (size_t pool = 0; pool < snapshot.pools.size(); ++pool)
    out["pools"].push_back(
        {{"name", snapshot.pools[pool].name},
         {"nodes", totals.by_pool[pool]},
         {"price_per_hour", snapshot.pools[pool].price_per_hour},
         {"interruptions_per_hour", snapshot.pools[pool].interruptions_per_hour}});
  out["queues"] = Json::array();
  const std::vector<QueueUse> uses = UseOfQueues(snapshot);
  for (size_t queue = 0; queue < uses.size(); ++queue)
    if (!snapshot.queues[queue].name.empty())  // jobs may wait for a queue that does not exist
      out["queues"].push_back(QueueJson(snapshot, uses[queue], queue, max_priority));
  out["users"] = Json::array();
  for (size_t user = 0; user < snapshot.users.size(); ++user) {
    const int64_t cap = snapshot.users[user].CapAt(snapshot.now);
    out["users"].push_back({{"name", snapshot.users[user].name},
                            {"max_gpus", cap == kUnlimited ? Json() : Json(cap)},
                            {"gpus", totals.gpus_by_user[user]}});
  }
  return out;
}

}  // namespace renzan::cluster::spec
