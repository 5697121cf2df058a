#include "renzan/cluster/local/controller/node_manager.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/local/controller/accounting.h"

namespace renzan::cluster::local {
namespace {

// It goes away at a known time.
bool HasNotice(const Node& node) {
  return node.state == NodeState::kDraining && node.until != kNever;
}

// The larger amount of each kind.
Resources MostOf(Resources a, const Resources& b) {
  for (int kind = 0; kind < kMaxResources; ++kind) a[kind] = std::max(a[kind], b[kind]);
  return a;
}

}  // namespace

// Bought nodes are named after their pool and number. Nodes of pools that the configuration no
// longer has come back only if workers still run on them (RecoverNodeOf).
void NodeManager::Recover() {
  Snapshot& snapshot = state_.snapshot;
  for (const NodeRecord& record : store_.Nodes()) {
    auto at = std::find_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                           [&](const Node& node) { return node.name == record.name; });
    if (at == snapshot.nodes.end()) {
      const auto pool = std::find_if(snapshot.pools.begin(), snapshot.pools.end(),
                                     [&](const Pool& each) { return each.name == record.pool; });
      int number = 0;
      const char* end = record.name.data() + record.name.size();
      const size_t digits = record.name.rfind('-') + 1;
      if (pool == snapshot.pools.end() ||
          std::from_chars(record.name.data() + digits, end, number).ptr != end ||
          number >= pool->max_nodes)
        continue;
      snapshot.nodes.push_back(
          MakeNode(snapshot, static_cast<int>(pool - snapshot.pools.begin()), number));
      at = snapshot.nodes.end() - 1;
    }
    at->state = record.state;
    at->until = record.until;
    at->reason = record.reason;
    if (record.closed_by != ClosedBy::kOperator)
      closed_by_[static_cast<int>(at - snapshot.nodes.begin())] = record.closed_by;
  }
}

int NodeManager::RecoverNodeOf(const NodeShare& share, const Job& job) {
  Snapshot& snapshot = state_.snapshot;
  const Resources needed = snapshot.worker_requests[job.request].per_worker * share.workers;
  if (const int at = Find(share.node); at >= 0) {
    Node& node = snapshot.nodes[at];
    const Resources used = UsedOn(snapshot, at) + needed;
    if (!used.FitsIn(node.capacity)) BeTooSmall(at, used);
    return at;
  }
  LogWarning("the configuration no longer has node {}: it is drained", share.node);
  snapshot.nodes.push_back({.name = share.node, .state = NodeState::kDraining});
  const int added = static_cast<int>(snapshot.nodes.size()) - 1;
  too_small_[added] = {.configured = {}, .state = NodeState::kGone};
  BeTooSmall(added, needed);
  return added;
}

// The node becomes as large as its workers need, so that the state is consistent, and takes no
// others.
void NodeManager::BeTooSmall(int index, const Resources& used) {
  Node& node = state_.snapshot.nodes[index];
  const auto [at, added] = too_small_.try_emplace(
      index, TooSmall{.configured = node.capacity, .state = node.state, .until = node.until});
  if (added)
    LogWarning(
        "node {} has become too small for the workers that run on it: it is drained until they fit",
        node.name);
  if (node.state != NodeState::kGone && node.state != NodeState::kDraining) {
    node.state = NodeState::kDraining;
    node.until = kNever;  // when it would have been reopened is no notice
  }
  node.capacity = MostOf(at->second.configured, used);
}

bool NodeManager::IsGone(int node) const {
  return state_.snapshot.nodes[node].state == NodeState::kGone || emptying_.count(node) > 0;
}

int NodeManager::Find(const std::string& name) const {
  const std::vector<Node>& nodes = state_.snapshot.nodes;
  for (size_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].name == name) return static_cast<int>(node);
  return -1;
}

int NodeManager::Named(const std::string& name) const {
  const int node = Find(name);
  if (node >= 0) return node;
  Fail(ErrorCode::kNoInput, "there is no node {}: `renzan nodes` lists them", name);
}

int NodeManager::InService(const std::string& name) const {
  const int node = Named(name);
  const NodeState state = state_.snapshot.nodes[node].state;
  if (!IsThere(state))
    Fail(ErrorCode::kUsage, "node {} is {}: it is not in service", name, NameOf(state));
  if (emptying_.count(node))
    Fail(ErrorCode::kUsage, "node {} is no longer in service: its workers are being ended", name);
  return node;
}

void NodeManager::Commit(const NodeChange& change, ClosedBy by) {
  const Node& node = change.node;
  const std::vector<Node>& nodes = state_.snapshot.nodes;
  // A node that is bought again, or has failed and is restored, is another machine.
  const bool is_another = change.index < static_cast<int>(nodes.size()) &&
                          nodes[change.index].state == NodeState::kGone &&
                          node.state != NodeState::kGone;
  const std::string pool = node.pool < 0 ? "" : state_.snapshot.pools[node.pool].name;
  store_.Transact([&] {
    store_.Put(NodeRecord{.name = node.name,
                          .pool = pool,
                          .state = node.state,
                          .until = node.until,
                          .closed_by = by,
                          .reason = node.reason});
    if (is_another) store_.DeleteEarlyFailuresOn(node.name);
  });
  if (is_another) ForgetFailuresOn(change.index);
  closed_by_.erase(change.index);
  if (by != ClosedBy::kOperator) closed_by_[change.index] = by;
  pools_.Observe();
  restored_.erase(change.index);
  emptying_.erase(change.index);
  state_.needs_scheduling = true;
}

void NodeManager::ForgetFailuresOn(int node) {
  const std::string& name = state_.snapshot.nodes[node].name;
  state_.suspicion.ForgetNode(name);
  for (Job& job : state_.snapshot.jobs) std::erase(job.failed_on, name);
  for (User& user : state_.snapshot.users)
    std::erase_if(user.failing_on, [&](const FailingNode& each) { return each.node == name; });
}

void NodeManager::Close(int node, ClosedBy by, const std::string& reason, TimeMs until) {
  Set(node, NodeState::kCordoned, until, by, reason);
}

bool NodeManager::IsClosedBy(int node, ClosedBy by) const {
  const auto at = closed_by_.find(node);
  return at != closed_by_.end() && at->second == by;
}

void NodeManager::Set(int index, NodeState state, TimeMs until, ClosedBy by,
                      const std::string& reason) {
  Snapshot& snapshot = state_.snapshot;
  NodeChange change{index, snapshot.nodes[index]};
  change.node.state = state;
  change.node.until = until;
  change.node.idle_since = snapshot.now;
  change.node.reason = reason;
  Commit(change, by);
  if (state == NodeState::kGone && InUse(snapshot, index)) {
    emptying_.insert(index);
    change.node.state = NodeState::kDraining;
    change.node.until = snapshot.now;
  }
  // A node that the configuration no longer has is gone after its last worker in any case.
  if (const auto at = too_small_.find(index); at != too_small_.end() && change.node.pool >= 0) {
    at->second.state = state;
    at->second.until = until;
    if (state == NodeState::kReady) change.node.state = NodeState::kDraining;
  }
  ChangeNode(change, snapshot);
  ShareDevices();
}

int NodeManager::Cordon(const std::string& name) {
  const int node = InService(name);
  if (HasNotice(state_.snapshot.nodes[node]))
    Fail(ErrorCode::kUsage,
         "node {} goes away soon (it is drained with a notice): it cannot be cordoned", name);
  state_.snapshot.now = NowMs(clock_);
  Set(node, NodeState::kCordoned, kNever);
  return node;
}

int NodeManager::Drain(const std::string& name, std::optional<TimeMs> notice_ms) {
  const int node = InService(name);
  const TimeMs now = state_.snapshot.now = NowMs(clock_);
  const bool had_notice = HasNotice(state_.snapshot.nodes[node]);
  Set(node, NodeState::kDraining, notice_ms ? now + *notice_ms : kNever);
  if (notice_ms && !had_notice) pools_.CountInterruption(node);
  return node;
}

int NodeManager::MarkFailed(const std::string& name) {
  const int node = Named(name);
  const NodeState state = state_.snapshot.nodes[node].state;
  if (state == NodeState::kGone) Fail(ErrorCode::kUsage, "node {} is gone already", name);
  const bool had_notice = HasNotice(state_.snapshot.nodes[node]);
  state_.snapshot.now = NowMs(clock_);
  SetGone(node);
  if (!had_notice && state != NodeState::kBooting) pools_.CountInterruption(node);
  return node;
}

bool NodeManager::Restore(const std::string& name) {
  Snapshot& snapshot = state_.snapshot;
  const int index = Named(name);
  const Node& node = snapshot.nodes[index];
  if (node.pool < 0) Fail(ErrorCode::kUsage, "node {} is no longer in the configuration", name);
  const Pool& pool = snapshot.pools[node.pool];
  const auto there = std::count_if(
      snapshot.nodes.begin(), snapshot.nodes.end(),
      [&](const Node& each) { return each.pool == node.pool && each.state != NodeState::kGone; });
  if (node.state == NodeState::kGone && there >= pool.max_nodes)
    Fail(ErrorCode::kUsage, "pool {} has its maximum of {}", pool.name,
         Counted(pool.max_nodes, "node"));
  // Whoever restores it has looked at it.
  store_.Transact([&] { store_.DeleteEarlyFailuresOn(name); });
  ForgetFailuresOn(index);
  if (emptying_.count(index)) {
    // After a restart it is ready, and its workers have been ended.
    store_.Transact([&] {
      store_.Put(
          NodeRecord{.name = name, .pool = pool.name, .state = NodeState::kReady, .until = kNever});
    });
    restored_.insert(index);
    return false;
  }
  snapshot.now = NowMs(clock_);
  SetReady(index);
  return !too_small_.contains(index);
}

std::vector<int> NodeManager::Due() const {
  std::vector<int> due;
  const std::vector<Node>& nodes = state_.snapshot.nodes;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeState state = nodes[node].state;
    const bool waits = state == NodeState::kBooting || state == NodeState::kDraining ||
                       state == NodeState::kCordoned;
    if (waits && nodes[node].until <= state_.snapshot.now && !emptying_.count(node))
      due.push_back(node);
  }
  return due;
}

TimeMs NodeManager::NextEvent() const {
  TimeMs next = kNever;
  const std::vector<Node>& nodes = state_.snapshot.nodes;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const NodeState state = nodes[node].state;
    const bool waits = state == NodeState::kBooting || state == NodeState::kDraining ||
                       state == NodeState::kCordoned;
    if (waits && !emptying_.count(node)) next = std::min(next, nodes[node].until);
  }
  return next;
}

void NodeManager::SetReady(int node) { Set(node, NodeState::kReady, kNever); }

void NodeManager::SetGone(int node) { Set(node, NodeState::kGone, kNever); }

void NodeManager::RecoverGone(int index) {
  emptying_.insert(index);
  Node& node = state_.snapshot.nodes[index];
  node.state = NodeState::kDraining;
  node.until = state_.snapshot.now;
}

void NodeManager::WorkersLeft(int index) {
  RestoreIfLargeEnough(index);
  ShareDevices();
}

void NodeManager::RestoreIfLargeEnough(int index) {
  const auto at = too_small_.find(index);
  if (at == too_small_.end()) return;
  const auto [configured, state, until] = at->second;
  const Resources used = UsedOn(state_.snapshot, index);
  Node& node = state_.snapshot.nodes[index];
  node.capacity = MostOf(configured, used);
  if (!used.FitsIn(configured)) return;
  if (emptying_.count(index) == 0) {
    node.state = state;
    node.until = until;
  }
  too_small_.erase(at);
  state_.needs_scheduling = true;
}

void NodeManager::ShareDevices() {
  Snapshot& snapshot = state_.snapshot;
  if (!state_.machine_gpus) return;
  int64_t most = 0;
  for (const Node& node : snapshot.nodes)
    if (IsThere(node.state)) most += node.capacity.gpu();
  if (most <= *state_.machine_gpus && !short_of_devices_) return;
  std::vector<int64_t> used(snapshot.nodes.size());
  int64_t free = *state_.machine_gpus;
  for (const Job& job : snapshot.jobs)
    for (const Placed& placed : job.placement) {
      const int64_t held = snapshot.worker_requests[job.request].per_worker.gpu() * placed.workers;
      used[placed.node] += held;
      free -= held;
    }
  const bool was_short = std::exchange(short_of_devices_, false);
  for (size_t index = 0; index < snapshot.nodes.size(); ++index) {
    Node& node = snapshot.nodes[index];
    // What has become too small is drained, and what is no longer configured is emptied: they take
    // no other workers.
    if (!IsThere(node.state) || node.pool < 0 || too_small_.contains(static_cast<int>(index)))
      continue;
    const int64_t configured = snapshot.pools[node.pool].capacity.gpu();
    const int64_t more =
        std::clamp<int64_t>(configured - used[index], 0, std::max<int64_t>(free, 0));
    free -= more;
    short_of_devices_ |= used[index] + more < configured;
    if (node.capacity.gpu() == used[index] + more) continue;
    node.capacity[kGpu] = used[index] + more;
    state_.needs_scheduling = true;
  }
  if (short_of_devices_ && !was_short)
    LogWarning(
        "workers from before a change of the configuration hold GPUs of other nodes, which have "
        "fewer until they end");
}

void NodeManager::Vacated(int index) {
  Node& node = state_.snapshot.nodes[index];
  node.idle_since = state_.snapshot.now;
  if (emptying_.erase(index) == 0) return;
  node.state = restored_.erase(index) ? NodeState::kReady : NodeState::kGone;
  node.until = kNever;
}

}  // namespace renzan::cluster::local
