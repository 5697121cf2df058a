#include "renzan/cluster/local/controller/node_checker.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/last_line.h"

namespace renzan::cluster::local {
namespace {

// Checks that run at the same time, at most: all nodes are on this machine.
constexpr int kMostRunning = 8;

// In ClusterState::watched, among the jobs' ids.
JobId KeyOf(int node) { return -JobId{node} - 1; }

}  // namespace

std::string NodeChecker::LogOf(int node) const {
  return fmt::format("{}/check-{}.log", options_.log_dir, state_.snapshot.nodes[node].name);
}

void NodeChecker::ReapKilled() {
  for (auto at = killed_.begin(); at != killed_.end();) {
    if (!agent_.Reap(at->second)) {
      ++at;
      continue;
    }
    state_.watched.erase(KeyOf(at->first));
    at = killed_.erase(at);
  }
}

std::vector<int> NodeChecker::Advance() {
  ReapKilled();
  std::vector<int> reopened;
  const TimeMs now = NowMs(clock_);
  for (int node = 0; node < static_cast<int>(state_.snapshot.nodes.size()); ++node) {
    const bool closed = nodes_.IsClosedBy(node, ClosedBy::kHealthCheck);
    if (options_.command.empty()) {
      if (closed) nodes_.SetReady(node);  // by an earlier configuration
      continue;
    }
    if (!IsThere(state_.snapshot.nodes[node].state) || state_.snapshot.nodes[node].pool < 0) {
      if (const auto at = checks_.find(node); at != checks_.end()) {
        if (at->second.child != 0) Stop(node, at->second);
        checks_.erase(at);
      }
      continue;
    }
    Check& check = checks_[node];
    if (check.child != 0) TakeResult(node, check);
    // It has booted, or has been restored.
    if (!check.why_not.empty() && state_.snapshot.nodes[node].state == NodeState::kReady)
      check.due = now;
    if (check.child == 0 && now >= check.due && running_ < kMostRunning && !killed_.contains(node))
      Start(node, check);
    const Node& facts = state_.snapshot.nodes[node];
    if (check.why_not.empty()) {
      if (!closed) continue;
      nodes_.SetReady(node);
      reopened.push_back(node);
    } else if (facts.state == NodeState::kReady || (closed && facts.reason != check.why_not)) {
      nodes_.Close(node, ClosedBy::kHealthCheck, check.why_not, kNever);
    }
  }
  return reopened;
}

void NodeChecker::Start(int node, Check& check) {
  try {
    check.child = agent_.StartChecking(
        options_.command, {{"RENZAN_NODE", state_.snapshot.nodes[node].name}}, LogOf(node));
  } catch (const Error& error) {
    return Ended(node, check, fmt::format("its health check cannot be started: {}", error.what()));
  }
  ++running_;
  check.deadline = NowMs(clock_) + options_.timeout_ms;
  state_.watched[KeyOf(node)] = check.child;
}

void NodeChecker::TakeResult(int node, Check& check) {
  std::string why_not;
  if (const std::optional<int> status = agent_.Reap(check.child)) {
    if (*status != 0) {
      const std::string line = LastLineOf(LogOf(node));
      why_not = fmt::format(
          "its health check {}{}{}",
          *status < 0 ? "was killed by a signal" : fmt::format("ended with {}", *status),
          line.empty() ? "" : ": ", line);
    }
    check.child = 0;
    --running_;
    state_.watched.erase(KeyOf(node));
  } else if (NowMs(clock_) >= check.deadline) {
    Stop(node, check);
    why_not = fmt::format("its health check took longer than {} s",
                          static_cast<double>(options_.timeout_ms) / 1000);
  } else {
    return;
  }
  Ended(node, check, why_not);
}

void NodeChecker::Stop(int node, Check& check) {
  agent_.StopChecking(check.child);
  killed_[node] = check.child;  // is watched until it has ended
  check.child = 0;
  --running_;
}

void NodeChecker::Ended(int node, Check& check, const std::string& why_not) {
  const std::string& name = state_.snapshot.nodes[node].name;
  if (std::exchange(check.outdated, false) && why_not.empty()) {
    check.due = NowMs(clock_);
    return;
  }
  if (!why_not.empty() && check.why_not != why_not)
    LogWarning("node {} takes no new jobs: {}", name, why_not);
  else if (why_not.empty() && !check.why_not.empty())
    LogInfo("node {} has passed its health check", name);
  check.why_not = why_not;
  check.due = NowMs(clock_) + options_.interval_ms;
}

void NodeChecker::JobFailedOn(const std::string& name) {
  const auto at = checks_.find(nodes_.Find(name));
  if (at == checks_.end()) return;
  Check& check = at->second;
  check.due = NowMs(clock_);
  check.outdated = check.child != 0;
  if (check.why_not.empty())
    check.why_not = "its health check has not passed since a job failed there";
}

std::string NodeChecker::WhyNot(int node) const {
  if (options_.command.empty()) return "";
  const auto at = checks_.find(node);
  return at == checks_.end() ? Check().why_not : at->second.why_not;
}

TimeMs NodeChecker::NextEvent() const {
  TimeMs next = kNever;
  for (const auto& [node, check] : checks_) {
    if (check.child != 0)
      next = std::min(next, check.deadline);
    else if (running_ < kMostRunning && !killed_.contains(node))
      next = std::min(next, check.due);
  }
  return next;
}

void NodeChecker::ClockWentBack(TimeMs now) {
  for (auto& [node, check] : checks_) {
    check.due = std::min(check.due, now + options_.interval_ms);
    check.deadline = std::min(check.deadline, now + options_.timeout_ms);
  }
}

}  // namespace renzan::cluster::local
