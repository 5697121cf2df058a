#include "renzan/cluster/local/controller/node_health.h"

#include <algorithm>
#include <set>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/gang.h"

namespace renzan::cluster::local {
namespace {

// At most one node in so many is suspected at a time: if jobs fail everywhere, something else is
// broken, such as a file system.
constexpr size_t kOneIn = 10;
// A job survives where others fail if it has run for this long, and so many times as long as they.
constexpr TimeMs kSurvivesMs = 2 * kSecond, kOutlasts = 2;

std::vector<std::string> NodesOf(const AttemptRecord& attempt) {
  std::vector<std::string> nodes;
  for (const NodeShare& share : attempt.placement) nodes.push_back(share.node);
  return nodes;
}

}  // namespace

void NodeHealth::Recover() {
  std::set<std::string> users;
  for (const EarlyFailure& failure : store_.EarlyFailures()) {
    state_.suspicion.Restore(failure);
    users.insert(failure.user);
    if (Job* job = state_.snapshot.Find(failure.job)) FailedEarly(*job, failure.node);
  }
  for (const std::string& user : users) NoteFailing(user);
}

void NodeHealth::AttemptEnded(const AttemptRecord& attempt, const std::string& user, TimeMs ran_ms,
                              bool well, const std::optional<EarlyFailure>& early) {
  const TimeMs now = state_.snapshot.now;
  Suspicion& suspicion = state_.suspicion;
  std::vector<EarlyFailure> changed;
  const auto add = [&](const std::vector<EarlyFailure>& more) {
    changed.insert(changed.end(), more.begin(), more.end());
  };
  if (early) {
    checker_.JobFailedOn(early->node);
    EarlyFailure failure = *early;
    failure.started = attempt.started;
    add(suspicion.Failed(failure));
    for (const auto& [id, live] : state_.live) {
      if (!live.record.attempt) continue;
      const TimeMs runs = now - live.record.attempt->started;
      const std::vector<std::string> nodes = NodesOf(*live.record.attempt);
      if (runs >= std::max(kSurvivesMs, kOutlasts * ran_ms))
        for (const std::string& node : nodes)
          suspicion.Survived(id, live.record.user, node, live.record.attempt->started);
      if (runs >= early_failure_ms_)
        add(suspicion.RanWell(id, nodes, live.record.attempt->started));
    }
  } else if (well || ran_ms >= early_failure_ms_) {
    const std::vector<std::string> nodes = NodesOf(attempt);
    for (const std::string& node : nodes)
      suspicion.Survived(attempt.job, user, node, attempt.started);
    add(suspicion.RanWell(attempt.job, nodes, attempt.started));
  }
  Put(changed);
  NoteFailing(user);
  std::set<std::string> nodes;
  for (const EarlyFailure& failure : changed)
    if (failure.counts) nodes.insert(failure.node);
  // Since this user's jobs avoid them, what shows that they are at fault is that others survive.
  for (const FailingNode& failing : FailingOn(user))
    if (const int node = nodes_.Find(failing.node); node >= 0 && MayClose(node))
      nodes.insert(failing.node);
  for (const std::string& node : nodes) SuspectIfWarranted(node);
}

void NodeHealth::Put(const std::vector<EarlyFailure>& changed) {
  std::vector<JobId> old;
  for (const JobId job : state_.suspicion.OldJobs(state_.snapshot.now))
    if (!state_.live.contains(job)) old.push_back(job);
  if (changed.empty() && old.empty()) return;
  store_.Transact([&] {
    for (const EarlyFailure& failure : changed) store_.Put(failure);
    for (const JobId job : old) store_.DeleteEarlyFailures(job);
  });
  for (const JobId job : old) state_.suspicion.ForgetJob(job);
}

std::vector<FailingNode>& NodeHealth::FailingOn(const std::string& user) {
  return state_.snapshot.users[state_.snapshot.InternUser(user)].failing_on;
}

void NodeHealth::NoteFailing(const std::string& name) {
  std::vector<FailingNode> failing = state_.suspicion.FailingFor(name, state_.snapshot.now);
  std::vector<FailingNode>& known = FailingOn(name);
  for (const FailingNode& each : failing)
    if (std::ranges::none_of(known, [&](const FailingNode& old) { return old.node == each.node; }))
      LogWarning("jobs of user {} avoid node {}: {} failed there soon after their start", name,
                 each.node, Counted(each.jobs, "job"));
  known = std::move(failing);
}

bool NodeHealth::MayClose(int node) const {
  const std::vector<Node>& nodes = state_.snapshot.nodes;
  if (nodes[node].state != NodeState::kReady) return false;
  size_t there = 0, ready = 0, suspected = 0;
  for (size_t at = 0; at < nodes.size(); ++at) {
    there += IsThere(nodes[at].state);
    ready += nodes[at].state == NodeState::kReady;
    suspected += nodes_.IsClosedBy(static_cast<int>(at), ClosedBy::kSuspicion);
  }
  return ready > 1 && suspected < std::max<size_t>(1, there / kOneIn);
}

void NodeHealth::PassedItsCheck(int node) { SuspectIfWarranted(state_.snapshot.nodes[node].name); }

void NodeHealth::SuspectIfWarranted(const std::string& name) {
  const TimeMs now = state_.snapshot.now;
  const std::string why = state_.suspicion.WhySuspected(name, now);
  const int node = nodes_.Find(name);
  if (why.empty() || node < 0 || suspect_for_ms_ == 0) return;
  if (!MayClose(node)) {
    if (state_.snapshot.nodes[node].state == NodeState::kReady)
      LogWarning("node {} stays in service, although {}: too few others are left", name, why);
    return;
  }
  nodes_.Close(node, ClosedBy::kSuspicion, why, now + suspect_for_ms_);
  LogWarning(
      "node {} is suspected: {}; nothing starts there for {} s, or until `renzan nodes restore {}`",
      name, why, suspect_for_ms_ / 1000, name);
}

void NodeHealth::Reopen(int node) {
  const std::vector<EarlyFailure> absolved =
      state_.suspicion.Absolve(state_.snapshot.nodes[node].name);
  Put(absolved);
  std::set<std::string> users;
  for (const EarlyFailure& failure : absolved) users.insert(failure.user);
  for (const std::string& user : users) NoteFailing(user);
  nodes_.SetReady(node);
}

}  // namespace renzan::cluster::local
