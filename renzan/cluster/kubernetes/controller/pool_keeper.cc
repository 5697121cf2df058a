#include "renzan/cluster/kubernetes/controller/pool_keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr TimeMs kBetweenLooksMs = 15 * kSecond;

int ReplicasIn(const Json& scale) {
  return static_cast<int>(NumberAt(scale, {"spec", "replicas"}));
}

bool IsForGood(const ApiError& error) {
  return error.is_not_found() || error.code() == ErrorCode::kNoPermission;
}

}  // namespace

PoolKeeper::PoolKeeper(Snapshot& snapshot, Inventory& inventory, const PodBook& pods,
                       Requests& requests, const Clock& clock)
    : snapshot_(snapshot), inventory_(inventory), pods_(pods), requests_(requests), clock_(clock) {}

void PoolKeeper::Put(std::shared_ptr<const Json> object) {
  NodePool pool = NodePoolFrom(object);
  const auto [at, is_new] = pools_.try_emplace(pool.name);
  Managed& managed = at->second;
  if (!managed.status.Put(std::move(object))) return;
  // Written by an earlier leader; from now on only this one writes it.
  if (is_new) {
    managed.booting_since = pool.booting_since;
    managed.idle_since = pool.idle_since;
  }
  if (!pool.scale || !managed.object.scale || !(*pool.scale == *managed.object.scale)) {
    managed.replicas.reset();
    managed.look_at = 0;
  }
  managed.object = std::move(pool);
  changed_ = true;
}

void PoolKeeper::Remove(const std::string& name) {
  const auto at = pools_.find(name);
  if (at == pools_.end()) return;
  for (const int slot : at->second.slots) snapshot_.nodes[slot].state = NodeState::kGone;
  snapshot_.pools[inventory_.PoolNamed(name)] = {.name = name};
  pools_.erase(at);
  inventory_.PutAgain(name, Now());
  changed_ = true;
}

// --- Facts.

void PoolKeeper::Look() {
  struct Read : Task {
    Managed* pool = nullptr;
    Json scale;
  };
  std::vector<Read> reads;
  const TimeMs now = Now();
  for (auto& [name, pool] : pools_)
    if (pool.object.scale && pool.look_at <= now) reads.push_back({{}, &pool, {}});
  RunAll(requests_, reads, [](Api& api, Read& read) {
    const ScaleRef& ref = *read.pool->object.scale;
    read.scale = api.Get(ref.kind, ref.ns, ref.name, "scale");
  });
  for (const Read& read : reads) {
    Managed& pool = *read.pool;
    const auto before = pool.replicas;
    pool.look_at = now + kBetweenLooksMs;
    pool.unreadable = read.error ? read.error->what() : "";
    if (!read.error)
      pool.replicas = ReplicasIn(read.scale);
    else if (IsForGood(*read.error))
      pool.replicas.reset();
    if (read.error) LogWarning("nodepool {}: {}", pool.object.name, pool.unreadable);
    changed_ |= pool.replicas != before;
  }
}

void PoolKeeper::CountMembers() {
  members_ = MembersOfPools(inventory_, snapshot_);
  for (auto& [name, pool] : pools_) {
    const auto at = members_.find(name);
    pool.members = at == members_.end() ? PoolMembers() : at->second;
  }
}

// Takes idle times from the earlier leader: this one has just seen these nodes for the first time.
void PoolKeeper::RestoreIdle(Managed& pool) {
  for (const auto& [name, since] : std::exchange(pool.idle_since, {}))
    if (const int node = inventory_.Find(name); node >= 0)
      snapshot_.nodes[node].idle_since = std::min(snapshot_.nodes[node].idle_since, since);
}

// Written only once nodes have been idle for a while, not whenever a gang ends. If there are very
// many, those that are returned first, because an object's size is limited.
Json PoolKeeper::IdleSince(const Managed& pool, const std::set<int>& used) const {
  constexpr size_t kMost = 1000;
  Json idle = Json::object();
  if (!pool.replicas) return idle;
  std::vector<std::pair<TimeMs, int>> longest;
  for (const int node : pool.members.takes_work)
    if (const TimeMs since = snapshot_.nodes[node].idle_since;
        !used.contains(node) && since + pool.object.pool.idle_ms / 4 <= Now())
      longest.emplace_back(since, node);
  std::sort(longest.begin(), longest.end());
  longest.resize(std::min(longest.size(), kMost));
  for (const auto& [since, node] : longest) idle[snapshot_.nodes[node].name] = since;
  return idle;
}

void PoolKeeper::Refresh() {
  Look();
  CountMembers();
  for (auto& [name, pool] : pools_) RestoreIdle(pool);
  if (KeepThoseThatStay()) CountMembers();
  for (auto& [name, pool] : pools_) SetFacts(pool);
  const double left = BudgetLeft(budget_per_hour_, members_, snapshot_);
  changed_ |= snapshot_.budget_per_hour != left;
  snapshot_.budget_per_hour = left;
}

// If there are no more nodes than there should be, none of them is leaving.
bool PoolKeeper::KeepThoseThatStay() {
  bool kept = false;
  for (auto& [name, pool] : pools_)
    if (pool.replicas && pool.members.nodes <= *pool.replicas)
      for (const std::string& node : pool.members.returning)
        if (SetTaint(node, false)) {
          kept = true;
          // It has to be idle for the full time again.
          snapshot_.nodes[inventory_.Find(node)].idle_since = Now();
        }
  changed_ |= kept;
  return kept;
}

void PoolKeeper::SetFacts(Managed& pool) {
  const TimeMs now = Now();
  const int index = inventory_.PoolNamed(pool.object.name);
  auto& since = pool.booting_since;
  since = StillBooting(std::move(since), pool.replicas.value_or(0), pool.members.nodes, now);
  pool.overdue = CountOverdue(pool.object, since, now);
  Pool facts = PoolFacts(pool.object, pool.members, pool.replicas.has_value(), pool.overdue,
                         inventory_, snapshot_);
  Pool& mine = snapshot_.pools[index];
  const bool other_nodes = mine.spot != facts.spot || IsScaled(mine) != IsScaled(facts);
  const bool changed =
      other_nodes || mine.capacity != facts.capacity || mine.labels != facts.labels ||
      mine.min_nodes != facts.min_nodes || mine.max_nodes != facts.max_nodes ||
      mine.price_per_hour != facts.price_per_hour || mine.boot_ms != facts.boot_ms ||
      mine.idle_ms != facts.idle_ms || mine.interruptions_per_hour != facts.interruptions_per_hour;
  mine = std::move(facts);
  if (other_nodes) inventory_.PutAgain(pool.object.name, now);
  changed_ |= changed;
  SetSlots(pool);
}

void PoolKeeper::SetSlots(Managed& pool) {
  const int index = inventory_.PoolNamed(pool.object.name);
  const Pool& facts = snapshot_.pools[index];
  const auto booting = pool.booting_since.size() - static_cast<size_t>(pool.overdue);
  while (pool.slots.size() < booting) {
    pool.slots.push_back(static_cast<int>(snapshot_.nodes.size()));
    snapshot_.nodes.push_back(
        {.name = fmt::format("{}/booting-{}", pool.object.name, pool.slots.size()),
         .pool = index,
         .state = NodeState::kGone});
  }
  for (size_t at = 0; at < pool.slots.size(); ++at) {
    Node& node = snapshot_.nodes[pool.slots[at]];
    const NodeState state = at < booting ? NodeState::kBooting : NodeState::kGone;
    const TimeMs since = at < booting ? pool.booting_since[pool.overdue + at] : 0;
    const TimeMs until = at < booting ? since + facts.boot_ms : kNever;
    changed_ |= node.state != state || node.until != until;
    node.pool = index;
    node.capacity = facts.capacity;
    node.labels = facts.labels;
    node.spot = facts.spot;
    node.state = state;
    node.until = until;
    node.idle_since = since;
  }
}

TimeMs PoolKeeper::NextLook() const {
  TimeMs next = kNever;
  for (const auto& [name, pool] : pools_) {
    if (pool.object.scale) next = std::min(next, pool.look_at);
    for (const TimeMs since : pool.booting_since)
      if (const TimeMs at = since + OverdueMs(pool.object.pool); at > Now())
        next = std::min(next, at);
  }
  return next;
}

// --- Decisions.

void PoolKeeper::Perform(const NodeChange& change) {
  const auto at = pools_.find(snapshot_.pools[change.node.pool].name);
  if (at == pools_.end()) return;
  Managed& pool = at->second;
  Node& node = snapshot_.nodes[change.index];
  if (node.state == NodeState::kGone) {
    pool.returned.push_back(change.index);
    return;
  }
  ++pool.bought;
  // The core may have reused the place of a node that is gone; until the machine is bought, there
  // is nothing.
  node.state = NodeState::kGone;
  node.until = kNever;
  if (inventory_.Find(node.name) == change.index ||
      std::find(pool.slots.begin(), pool.slots.end(), change.index) != pool.slots.end())
    return;
  pool.slots.push_back(change.index);
  node.name = fmt::format("{}/booting-{}", pool.object.name, pool.slots.size());
}

void PoolKeeper::HasDecided() {
  for (auto& [name, pool] : pools_)
    if (pool.bought == 0 && pool.returned.empty()) pool.unscaled.clear();
}

bool PoolKeeper::HasForeignPods(const std::string& node) const {
  const auto on_it = pods_.OnNode(node);
  return std::any_of(on_it.begin(), on_it.end(), [](const Pod* pod) { return !pod->of_node; });
}

bool PoolKeeper::SetTaint(const std::string& name, bool returning) {
  Json node;
  const auto failed = Ask(requests_, [&](Api& api) {
    node = api.Get(Nodes(), "", name);
    Json taints = Json::array();
    for (const Json& taint : At(node, {"spec", "taints"}))
      if (TextAt(taint, {"key"}) != kReturningTaint) taints.push_back(taint);
    if (returning) taints.push_back({{"key", kReturningTaint}, {"effect", "NoSchedule"}});
    node = api.MergePatch(
        Nodes(), "", name,
        {{"metadata", {{"resourceVersion", TextAt(node, {"metadata", "resourceVersion"})}}},
         {"spec", {{"taints", taints}}}});
  });
  if (failed) {
    LogWarning("{}", failed->what());
    return false;
  }
  inventory_.PutOwn(NodeFrom(node), Now());
  return true;
}

bool PoolKeeper::Scale(Managed& pool) {
  const int bought = std::exchange(pool.bought, 0);
  const std::vector<int> returned = std::exchange(pool.returned, {});
  if (bought == 0 && returned.empty()) return true;
  bool all = true;
  int leaving = 0;
  for (const int index : returned) {
    const std::string name = snapshot_.nodes[index].name;
    if (pool.replicas && !HasForeignPods(name) && SetTaint(name, true)) {
      ++leaving;
    } else if (const auto known = inventory_.known().find(name);
               known != inventory_.known().end()) {
      // The node stays, and has to be idle for the full time again.
      inventory_.Put(KubernetesNode(known->second), Now());
    }
  }
  if (!pool.replicas) return true;
  const int extra = pool.members.nodes - *pool.replicas;
  if (bought > 0 && extra > 0) {
    pool.unscaled =
        fmt::format("before nodes are bought, {} that have been returned must go", extra);
    return true;
  }
  // There may be extra nodes that the replicas no longer account for.
  const int wanted = std::max(0, *pool.replicas + bought - leaving);
  if (wanted == *pool.replicas) return true;
  const ScaleRef& ref = *pool.object.scale;
  bool as_known = true;
  Json scale;
  const auto failed = Ask(requests_, [&](Api& api) {
    scale = api.Get(ref.kind, ref.ns, ref.name, "scale");
    as_known = ReplicasIn(scale) == *pool.replicas;
    if (!as_known) return;
    const std::string version = TextAt(scale, {"metadata", "resourceVersion"});
    scale = api.MergePatch(
        ref.kind, ref.ns, ref.name,
        {{"metadata", {{"resourceVersion", version}}}, {"spec", {{"replicas", wanted}}}}, "scale");
  });
  if (failed) {
    // It may have been executed nevertheless.
    pool.look_at = 0;
    if (!failed->is_conflict()) pool.unscaled = failed->what();
    LogWarning("nodepool {}: {}", pool.object.name, failed->what());
    all = false;
    changed_ = true;  // so that it is decided again
  } else {
    LogInfo("nodepool {}: {} replicas of {}, was {}{}", pool.object.name, ReplicasIn(scale),
            ref.path(), *pool.replicas, as_known ? "" : ": somebody else has changed that");
    pool.replicas = ReplicasIn(scale);
    pool.look_at = Now() + kBetweenLooksMs;
    pool.unscaled.clear();
  }
  return all;
}

bool PoolKeeper::Flush() {
  bool all = true;
  bool scaled = false;
  for (auto& [name, pool] : pools_) {
    scaled |= pool.bought > 0 || !pool.returned.empty();
    all &= Scale(pool);
  }
  if (scaled) Refresh();
  std::set<int> used;
  if (!pools_.empty())
    for (const Job& job : snapshot_.jobs)
      for (const Placed& placed : HeldBy(job)) used.insert(placed.node);
  for (auto& [name, pool] : pools_)
    all &= pool.status.Set(NodePools(), StatusOf(pool, used), requests_);
  return all;
}

Json PoolKeeper::StatusOf(const Managed& pool, const std::set<int>& used) const {
  const std::string& invalid = pool.object.invalid;
  const int64_t generation = pool.object.generation;
  const Json& before = pool.status.status();
  const bool scalable = pool.object.scale && invalid.empty() && pool.trouble().empty();
  std::string why_not = !invalid.empty() ? invalid : pool.trouble();
  if (why_not.empty() && !pool.object.scale) why_not = "spec.scaleRef is not set";
  std::string message = !invalid.empty() ? invalid : pool.trouble();
  if (message.empty() && pool.overdue > 0)
    message = fmt::format("{} machines that were bought have not become nodes", pool.overdue);
  Json status = {
      {"observedGeneration", generation},
      {"nodes", pool.members.nodes},
      {"ready", pool.members.ready},
      {"booting", pool.booting_since.size()},
      {"conditions",
       {ConditionObject(
            {"Accepted", invalid.empty(), invalid.empty() ? "Accepted" : "Invalid", invalid},
            generation, before, Now()),
        ConditionObject({"Scalable", scalable,
                         scalable             ? "Scalable"
                         : !pool.object.scale ? "NoScaleRef"
                         : !invalid.empty()   ? "Invalid"
                                              : "Trouble",
                         why_not},
                        generation, before, Now())}},
      {"facts", {{"bootingSinceMs", pool.booting_since}, {"idleSinceMs", IdleSince(pool, used)}}}};
  if (pool.replicas) status["wanted"] = *pool.replicas;
  if (!message.empty()) status["message"] = message;
  return status;
}

}  // namespace renzan::cluster::kubernetes
