#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {
namespace {

bool RunsOn(const Job& job, int node) {
  return std::any_of(job.placement.begin(), job.placement.end(),
                     [&](const Placed& placed) { return placed.node == node; });
}

}  // namespace

// Some of its workers are on the failed node, and are ended without notice. False: the request
// could not be written.
bool Controller::EndOnFailedNode(LiveJob& live, const std::string& node) {
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

// Those that are stopping already may have got a longer grace.
void Controller::ResendStops(int node) {
  for (auto& [id, live] : state_.live) {
    const Job& job = *state_.snapshot.Find(id);
    const bool stops = job.state == JobState::kStopping || job.state == JobState::kResizing;
    if (stops && RunsOn(job, node)) AskToStop(live);
  }
}

void Controller::EndWorkersOn(int node) {
  unsent_failures_.insert(node);  // until all requests are written, should the disk be full
  bool all_sent = true;
  for (auto& [id, live] : state_.live)
    if (RunsOn(*state_.snapshot.Find(id), node))
      all_sent &= EndOnFailedNode(live, state_.snapshot.nodes[node].name);
  if (all_sent) unsent_failures_.erase(node);
}

void Controller::AdvanceNodes() {
  for (const int node : std::set<int>(unsent_failures_)) EndWorkersOn(node);
  for (const int node : nodes_.Due()) {
    if (state_.snapshot.nodes[node].state == NodeState::kBooting) {
      nodes_.SetReady(node);
    } else {
      nodes_.SetGone(node);
      EndWorkersOn(node);
    }
  }
}

void Controller::Cordon(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  nodes_.Cordon(name);
}

void Controller::Drain(const std::string& name, std::optional<TimeMs> notice_ms,
                       const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = nodes_.Drain(name, notice_ms);
  if (notice_ms) ResendStops(node);
}

void Controller::FailNode(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  EndWorkersOn(nodes_.MarkFailed(name));
}

bool Controller::Restore(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  return nodes_.Restore(name);
}

}  // namespace renzan::cluster::local
