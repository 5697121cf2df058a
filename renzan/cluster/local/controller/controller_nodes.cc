#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

// It vanishes at a time that is known.
bool IsAnnounced(const Node& node) {
  return node.state == NodeState::kDraining && node.until != kNever;
}

}  // namespace

int Controller::FindNode(const std::string& name) const {
  for (size_t node = 0; node < state_.snapshot.nodes.size(); ++node)
    if (state_.snapshot.nodes[node].name == name) return static_cast<int>(node);
  return -1;
}

int Controller::NodeNamed(const std::string& name) const {
  const int node = FindNode(name);
  if (node >= 0) return node;
  Fail(ErrorCode::kNoInput, "there is no node {}: `renzan nodes` lists them", name);
}

bool Controller::InUse(int node) const {
  for (const Job& job : state_.snapshot.jobs)
    for (const Placed& placed : job.placement)
      if (placed.node == node) return true;
  return false;
}

// Written down first. What the store calls gone may still have workers that are being killed; the
// scheduler sees it as draining until they are.
void Controller::SetNode(int index, NodeState state, TimeMs until) {
  Node& node = state_.snapshot.nodes[index];
  const std::string pool = node.pool < 0 ? "" : state_.snapshot.pools[node.pool].name;
  store_.Transact([&] {
    store_.Put(NodeRecord{.name = node.name, .pool = pool, .state = state, .until = until});
  });
  pools_.Observe();
  restored_.erase(index);
  const bool lingers = state == NodeState::kGone && InUse(index);
  if (lingers) {
    vanishing_.insert(index);
  } else {
    vanishing_.erase(index);
    untold_.erase(index);
  }
  node.state = lingers ? NodeState::kDraining : state;
  node.until = lingers ? state_.snapshot.now : until;
  node.idle_since = state_.snapshot.now;
  state_.needs_scheduling = true;
}

// Some of its workers stand on the node, and end without notice. False: they could not be told.
bool Controller::EndOnLostNode(LiveJob& live, const std::string& node) {
  if (live.record.state == RecordState::kRunning) {
    JobRecord record = live.record;
    AttemptRecord attempt = *live.attempt;
    record.state = RecordState::kStopping;
    attempt.stop_reason = fmt::format("node {} is lost", node);
    log_.Commit(record, attempt, "node_failed", attempt.stop_reason, Now());
    live.record = record;
    live.attempt = attempt;
    state_.snapshot.Find(record.id)->state = JobState::kStopping;
  }
  try {
    agent_.NodeFailed(directories_.OfAttempt(live.record.id, live.attempt->number), node);
  } catch (const Error& error) {
    LogWarning("job {}: {}", live.record.id, error.what());
    state_.retry_at = Now() + 1000;
    return false;
  }
  return true;
}

// Those that are stopping already may have been told of a longer grace.
void Controller::TellStoppingJobs(int node) {
  for (auto& [id, live] : state_.live) {
    const Job* job = state_.snapshot.Find(id);
    const bool stops = job->state == JobState::kStopping || job->state == JobState::kResizing;
    const auto on_it = [&](const Placed& placed) { return placed.node == node; };
    if (stops && std::any_of(job->placement.begin(), job->placement.end(), on_it)) AskToStop(live);
  }
}

void Controller::Vanish(int index) {
  SetNode(index, NodeState::kGone, kNever);
  if (!InUse(index)) return;
  untold_.insert(index);  // until all have been told, should the disk be full
  EndWorkersOn(index);
}

void Controller::EndWorkersOn(int index) {
  bool all_told = true;
  for (auto& [id, live] : state_.live) {
    const auto on_it = [&](const Placed& placed) { return placed.node == index; };
    const Job* job = state_.snapshot.Find(id);
    if (std::any_of(job->placement.begin(), job->placement.end(), on_it))
      all_told &= EndOnLostNode(live, state_.snapshot.nodes[index].name);
  }
  if (all_told) untold_.erase(index);
}

void Controller::AdvanceNodes() {
  for (const int node : std::set<int>(untold_)) EndWorkersOn(node);
  for (int node = 0; node < static_cast<int>(state_.snapshot.nodes.size()); ++node) {
    const Node& each = state_.snapshot.nodes[node];
    if (each.until > state_.snapshot.now || vanishing_.count(node)) continue;
    if (each.state == NodeState::kBooting) SetNode(node, NodeState::kReady, kNever);
    if (each.state == NodeState::kDraining) Vanish(node);
  }
}

TimeMs Controller::NextNodeEvent() const {
  TimeMs next = kNever;
  for (int node = 0; node < static_cast<int>(state_.snapshot.nodes.size()); ++node) {
    const Node& each = state_.snapshot.nodes[node];
    const bool waits = each.state == NodeState::kBooting || each.state == NodeState::kDraining;
    if (waits && !vanishing_.count(node)) next = std::min(next, each.until);
  }
  return next;
}

void Controller::BuyNodes(const ScaleOut& scale) {
  const Pool& pool = state_.snapshot.pools[scale.pool];
  const TimeMs ready_at = state_.snapshot.now + pool.boot_ms;
  for (int bought = 0; bought < scale.nodes; ++bought) {
    std::set<std::string> names;
    int free = -1;
    for (int node = 0; node < static_cast<int>(state_.snapshot.nodes.size()); ++node) {
      const Node& each = state_.snapshot.nodes[node];
      names.insert(each.name);
      if (each.pool == scale.pool && free < 0 && each.state == NodeState::kGone) free = node;
    }
    if (free < 0) {
      // Its number is not always that of the pool's nodes: the pool may have been another once.
      Node node = spec::MakeNode(state_.snapshot, scale.pool, 0);
      for (int number = 1; names.count(node.name); ++number)
        node = spec::MakeNode(state_.snapshot, scale.pool, number);
      node.state = NodeState::kGone;
      free = static_cast<int>(state_.snapshot.nodes.size());
      state_.snapshot.nodes.push_back(node);
    }
    SetNode(free, pool.boot_ms == 0 ? NodeState::kReady : NodeState::kBooting,
            pool.boot_ms == 0 ? kNever : ready_at);
  }
}

void Controller::GiveBack(int node) {
  if (!InUse(node)) SetNode(node, NodeState::kGone, kNever);
}

// Throws Error kUsage for one that there is nothing to take out of service.
int Controller::NodeInService(const std::string& name) const {
  const int node = NodeNamed(name);
  const NodeState state = state_.snapshot.nodes[node].state;
  if (!IsThere(state))
    Fail(ErrorCode::kUsage, "node {} is {}: it is not in service", name, NameOf(state));
  if (vanishing_.count(node))
    Fail(ErrorCode::kUsage, "node {} is lost: its workers are being ended already", name);
  return node;
}

void Controller::Cordon(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = NodeInService(name);
  if (IsAnnounced(state_.snapshot.nodes[node]))
    Fail(ErrorCode::kUsage, "node {} is about to vanish: it cannot be kept", name);
  state_.snapshot.now = Now();
  SetNode(node, NodeState::kCordoned, kNever);
}

void Controller::Drain(const std::string& name, std::optional<TimeMs> notice_ms,
                       const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = NodeInService(name);
  state_.snapshot.now = Now();
  const bool announced = IsAnnounced(state_.snapshot.nodes[node]);
  SetNode(node, NodeState::kDraining, notice_ms ? state_.snapshot.now + *notice_ms : kNever);
  if (notice_ms) TellStoppingJobs(node);
  if (notice_ms && !announced) pools_.CountInterruption(node);
}

void Controller::FailNode(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = NodeNamed(name);
  const NodeState state = state_.snapshot.nodes[node].state;
  if (state == NodeState::kGone) Fail(ErrorCode::kUsage, "node {} is gone already", name);
  const bool announced = IsAnnounced(state_.snapshot.nodes[node]);
  state_.snapshot.now = Now();
  Vanish(node);
  if (!announced && state != NodeState::kBooting) pools_.CountInterruption(node);
}

bool Controller::Restore(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  const int index = NodeNamed(name);
  Node& node = state_.snapshot.nodes[index];
  if (node.pool < 0) Fail(ErrorCode::kUsage, "node {} is no longer in the configuration", name);
  const Pool& pool = state_.snapshot.pools[node.pool];
  const auto there = std::count_if(
      state_.snapshot.nodes.begin(), state_.snapshot.nodes.end(),
      [&](const Node& each) { return each.pool == node.pool && each.state != NodeState::kGone; });
  if (node.state == NodeState::kGone && there >= pool.max_nodes)
    Fail(ErrorCode::kUsage, "pool {} has all of its {} nodes", pool.name, pool.max_nodes);
  if (vanishing_.count(index)) {
    // A daemon that comes back then finds it ready, and its workers told to end.
    store_.Transact([&] {
      store_.Put(
          NodeRecord{.name = name, .pool = pool.name, .state = NodeState::kReady, .until = kNever});
    });
    restored_.insert(index);
    return false;
  }
  state_.snapshot.now = Now();
  SetNode(index, NodeState::kReady, kNever);
  return true;
}

}  // namespace renzan::cluster::local
