#include "renzan/cluster/local/controller/job_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/salvaged_job.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {
namespace {

bool IsStopping(JobState state) {
  return state == JobState::kStopping || state == JobState::kResizing;
}

// The words of events are part of the daemon's API.
const char* EventOf(const Transition& transition) {
  switch (transition.kind) {
    case Transition::Kind::kStarted:
      return "started";
    case Transition::Kind::kStopping:
      return NameOf(RecordState::kStopping);
    case Transition::Kind::kResizing:
      return NameOf(RecordState::kResizing);
    case Transition::Kind::kEvicted:
      return "node_failed";
    case Transition::Kind::kCancelling:
      return "cancelling";
    case Transition::Kind::kCancelled:
      return "cancelled";
    case Transition::Kind::kEnded:
      break;
  }
  const RecordState state = transition.ended->outcome.state;
  return transition.end->by == EndedBy::kNeverStarted && !HasEnded(state)
             ? "not_started"
             : NameOf(transition.facts.state);
}

AttemptRecord EndedRecord(AttemptRecord attempt, const AttemptEnd& end) {
  attempt.ended = end.ended_ms;
  attempt.ended_by = NameOf(end.by);
  attempt.message = end.message;
  if (HasRun(end.by)) attempt.exit_code = end.exit_code;
  return attempt;
}

// The outputs that are collected before the job counts as ended.
Outputs OutputsAtEnd(const LiveRecord& live, const Outcome& outcome) {
  return HasEnded(outcome.state) ? OutputsOf(live.spec) : Outputs();
}

std::optional<EarlyFailure> EarlyFailureOf(const JobRecord& record, const EndedAttempt& ended,
                                           TimeMs now) {
  if (ended.failed_early_on.empty()) return std::nullopt;
  return EarlyFailure{
      .job = record.id, .node = ended.failed_early_on, .user = record.user, .time = now};
}

}  // namespace

std::string JobRunner::DirectoryOf(const LiveRecord& live) const {
  return directories_.OfAttempt(live.record.id, live.record.attempt->number);
}

// --- Start and stop.

NamedPlacement JobRunner::Assign(const Job& job, const Placement& placement) {
  return WithDevices(state_, placement,
                     state_.snapshot.worker_requests[job.request].per_worker.gpu());
}

void JobRunner::Commit(const Transition& transition) {
  LiveRecord& live = Live(transition.job);
  if (transition.kind == Transition::Kind::kEnded) return CommitEnd(live, transition);
  JobRecord record = live.record;
  static_cast<JobFacts&>(record) = transition.facts;
  if (transition.kind == Transition::Kind::kStarted) {
    CHECK(live.record.state == RecordState::kPending && !live.record.attempt);
    record.attempt.emplace();
    record.attempt->job = record.id;
    record.attempt->number = live.record.attempts;
  }
  if (record.attempt) static_cast<AttemptFacts&>(*record.attempt) = transition.attempt;
  record.cancel_requested |= transition.kind == Transition::Kind::kCancelling ||
                             transition.kind == Transition::Kind::kCancelled;
  log_.Commit(record, std::nullopt, EventOf(transition), transition.text, transition.when);
  live.record = std::move(record);
}

void JobRunner::Start(JobId id) {
  LiveRecord& live = Live(id);
  const JobRecord& record = live.record;
  const int request = state_.snapshot.Find(record.id)->request;
  retention_.AttemptStarted(record.id, live.record.attempt->number);
  progress_.AttemptStarted(record.id);
  try {
    std::optional<std::string> manifest;
    if (live.record.attempt->number == 0) {
      const std::optional<JobTexts> texts = store_.TextsOf(record.id);
      if (!texts)
        Fail(ErrorCode::kData,
             "its specification in state.db is damaged: cancel the job and submit it again");
      manifest = texts->manifest;
    }
    directories_.Create(record, manifest);
    const Resources& per_worker = state_.snapshot.worker_requests[request].per_worker;
    state_.watched[record.id] = agent_.Start(
        DirectoryOf(live),
        MakeAttemptPlan(live, per_worker, directories_, inherited_.PathOf(record.id), enforced_));
  } catch (const Error& error) {
    LogError("job {} cannot be started: {}", record.id, error.what());
    // If the disk is full now, FinishEnded() finds an attempt that never started.
    to_check_.insert(record.id);
    Finish(live, EndWithoutStart(live, error.what()));
  }
}

void JobRunner::Commit(const std::vector<std::pair<JobId, NamedPlacement>>& reservations,
                       const std::vector<JobId>& no_longer_backfilled) {
  std::map<JobId, JobRecord> changed;
  const auto change = [&](JobId job) -> JobRecord& {
    return changed.try_emplace(job, Live(job).record).first->second;
  };
  const std::map<JobId, NamedPlacement> kept(reservations.begin(), reservations.end());
  for (const auto& [job, placement] : kept)
    if (Live(job).record.reservation != placement) change(job).reservation = placement;
  for (const auto& [job, live] : state_.live)
    if (!live.record.reservation.empty() && !kept.contains(job)) change(job).reservation.clear();
  for (const JobId job : no_longer_backfilled) change(job).attempt->backfilled = false;
  if (changed.empty()) return;
  store_.Transact([&] {
    for (const auto& [job, record] : changed) store_.Put(record);
  });
  for (auto& [job, record] : changed) Live(job).record = std::move(record);
}

RecordState JobRunner::Cancel(LiveRecord& live, const std::string& user) {
  const JobId id = live.record.id;
  if (live.record.cancel_requested && live.record.state != RecordState::kPending) {
    SendStop(live);
    return live.record.state;
  }
  const RecordState state = lifecycle_.Cancel(id, fmt::format("by {}", user));
  if (HasEnded(state)) Remove(id);
  return state;
}

void JobRunner::SendStop(LiveRecord& live) {
  live.stop_unsent = false;
  progress_.StopRequested(live.record.id);
  try {
    agent_.Stop(DirectoryOf(live), GraceOf(live));
  } catch (const Error& error) {
    // It has just ended, or the disk was full: FinishEnded() finds out, and sends the request
    // again.
    LogWarning("job {} could not be asked to stop: {}", live.record.id, error.what());
    live.stop_unsent = true;
    to_check_.insert(live.record.id);
    state_.retry_at = Now() + kRetryMs;
  }
}

void JobRunner::SendTimeLimit(LiveRecord& live) {
  live.limit_unsent = false;
  try {
    agent_.SetTimeLimit(DirectoryOf(live), TimeLimitOf(live));
  } catch (const Error& error) {
    // As in SendStop().
    LogWarning("job {} could not be told its time limit: {}", live.record.id, error.what());
    live.limit_unsent = true;
    to_check_.insert(live.record.id);
    state_.retry_at = Now() + kRetryMs;
  }
}

double JobRunner::GraceOf(const LiveRecord& live) const {
  double grace = static_cast<double>(live.spec.grace_ms()) / 1000;
  for (const Placed& placed : state_.snapshot.Find(live.record.id)->placement) {
    const Node& node = state_.snapshot.nodes[placed.node];
    if (node.state == NodeState::kDraining && node.until != kNever)
      grace = std::min(grace, std::max(0.0, static_cast<double>(node.until - Now()) / 1000));
  }
  return grace;
}

// --- Nodes that fail or go away.

void JobRunner::EndWorkersOn(int node) {
  unsent_.insert(node);  // until all requests have been written, in case the disk is full
  bool all_sent = true;
  const std::string& name = state_.snapshot.nodes[node].name;
  for (auto& [id, live] : state_.live) {
    const Job& job = *state_.snapshot.Find(id);
    if (IsOn(job.placement, node))
      all_sent &= EndOnFailedNode(live, name);
    else if (IsOn(job.target, node))
      // It finishes saving its work, and then waits.
      lifecycle_.Evict(id, fmt::format("node {}, to which it was to move, failed", name));
  }
  if (all_sent) unsent_.erase(node);
}

void JobRunner::RetryEndWorkers() {
  for (const int node : std::set<int>(unsent_)) EndWorkersOn(node);
}

// False: the request could not be written.
bool JobRunner::EndOnFailedNode(LiveRecord& live, const std::string& node) {
  if (live.record.state == RecordState::kRunning)
    lifecycle_.Evict(live.record.id, fmt::format("node {} failed", node));
  try {
    agent_.NodeFailed(DirectoryOf(live), node);
  } catch (const Error& error) {
    LogWarning("job {}: {}", live.record.id, error.what());
    state_.retry_at = Now() + kRetryMs;
    return false;
  }
  return true;
}

void JobRunner::ShortenGraceOn(int node) {
  for (auto& [id, live] : state_.live) {
    const Job& job = *state_.snapshot.Find(id);
    if (IsStopping(job.state) && IsOn(job.placement, node)) SendStop(live);
  }
}

// --- Ends.

void JobRunner::FinishEnded() {
  struct Ended {
    TimeMs time;
    JobId job;
    AttemptEnd end;
  };
  std::vector<Ended> ended;
  const std::set<JobId> to_check = std::exchange(to_check_, {});
  for (const JobId id : to_check) {
    const auto at = state_.live.find(id);
    if (at == state_.live.end() || !at->second.record.attempt) continue;
    LiveRecord& live = at->second;
    const AttemptReport report = Report(live);
    if (IsAlive(report.phase)) {
      to_check_.insert(id);
      state_.retry_at = state_.snapshot.now + kRetryMs;
      if (live.stop_unsent) SendStop(live);
      if (live.limit_unsent) SendTimeLimit(live);
      continue;
    }
    AttemptEnd end = report.phase == AttemptPhase::kNone
                         ? EndWithoutStart(live, "it could not be started")
                         : report.end.value_or(LostEnd(live));
    ended.push_back({end.ended_ms, id, std::move(end)});
  }
  // Kept until each end is committed, in case the disk is full.
  for (const Ended& each : ended) to_check_.insert(each.job);
  // In the order in which they ended, so that usage at each moment is that of what ran then.
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Ended& a, const Ended& b) { return a.time < b.time; });
  for (const Ended& each : ended) {
    Finish(state_.live.at(each.job), each.end);
  }
}

// An attempt whose state cannot be read counts as running, and is checked again.
AttemptReport JobRunner::Report(const LiveRecord& live) {
  try {
    return agent_.Report(DirectoryOf(live));
  } catch (const Error& error) {
    LogWarning("job {}: {}", live.record.id, error.what());
    return {.phase = AttemptPhase::kRunning};
  }
}

void JobRunner::KillLeftOvers(JobId job, const std::string& directory) {
  try {
    if (const int left = agent_.CleanUp(directory); left > 0)
      LogWarning("job {}: killed {} processes that its supervisor left behind", job, left);
  } catch (const Error& error) {
    LogWarning("job {}: processes that its supervisor left behind may still run: {}", job,
               error.what());
  }
}

// Of an attempt whose processes are gone, though no supervisor has reported how they ended.
AttemptEnd JobRunner::LostEnd(const LiveRecord& live) const {
  const TimeMs ended = live.lost_at.value_or(state_.snapshot.now);
  return {.by = EndedBy::kLost,
          .message =
              "its supervisor ended without a report: it was killed, or the machine was restarted",
          .ended_ms = ended,
          .ran_ms = std::max<TimeMs>(0, ended - live.record.attempt->started)};
}

AttemptEnd JobRunner::EndWithoutStart(const LiveRecord& live, const std::string& why) const {
  return {.by = EndedBy::kNeverStarted,
          .message = why,
          .ended_ms = std::max(live.record.attempt->started, log_.Until(Now()))};
}

void JobRunner::Finish(LiveRecord& live, const AttemptEnd& end) {
  const JobId id = live.record.id;
  if (end.by == EndedBy::kLost) KillLeftOvers(id, DirectoryOf(live));
  if (HasRun(end.by)) progress_.MeasureEnd(live, end);
  const AttemptRecord attempt = EndedRecord(*live.record.attempt, end);
  const TimeMs now = state_.snapshot.now;
  // A damaged job never starts again.
  const bool for_good = live.record.cancel_requested || !live.record.damaged.empty();
  const EndedAttempt ended =
      lifecycle_.Finish(id, end, {live.policy, for_good, early_failure_ms_}, now);
  const JobRecord record = live.record;
  if (HasEnded(ended.outcome.state)) {
    const Outputs outputs = OutputsAtEnd(live, ended.outcome);
    Remove(id);
    if (!outputs.empty()) collector_.Start(record, outputs);
  }
  if (HasRun(end.by))
    health_.AttemptEnded(attempt, record.user, end.ran_ms,
                         ended.outcome.state == RecordState::kDone,
                         EarlyFailureOf(record, ended, now));
}

void JobRunner::CommitEnd(LiveRecord& live, const Transition& transition) {
  const AttemptEnd& end = *transition.end;
  Outcome outcome = transition.ended->outcome;
  JobRecord record = live.record;
  static_cast<JobFacts&>(record) = transition.facts;
  record.message = end.message;
  if (!record.damaged.empty() && !record.cancel_requested) {
    const bool done = end.by == EndedBy::kItself && end.exit_code == 0;
    record.state = outcome.state = done ? RecordState::kDone : RecordState::kFailed;
    record.message = done ? record.damaged : EndOfDamaged(record);
    outcome.text = record.message;
  }
  const Outputs outputs = OutputsAtEnd(live, outcome);
  std::string text = outcome.text;
  const char* event =
      record.state == transition.facts.state ? EventOf(transition) : NameOf(record.state);
  if (!outputs.empty()) {
    record.state = RecordState::kCollecting;
    record.ended.reset();
    record.collection = {.becomes = outcome.state, .ended = end.ended_ms, .text = outcome.text};
    event = NameOf(record.state);
    text += "; " + WhatIsCollected(outputs);
  }
  const auto early = EarlyFailureOf(record, *transition.ended, state_.snapshot.now);
  const AttemptRecord attempt = EndedRecord(*std::exchange(record.attempt, {}), end);
  log_.Commit(record, attempt, event, text, transition.when, early);
  live.record = std::move(record);
}

void JobRunner::Ended(JobId id, const Placement& placement, const EndedAttempt&) {
  LiveRecord& live = Live(id);
  live.lost_at.reset();
  live.limit_unsent = false;
  to_check_.erase(id);
  progress_.AttemptEnded(id);
  Release(id, placement);
}

// The job has no workers any more.
void JobRunner::Release(JobId job, const Placement& placement) {
  state_.watched.erase(job);
  for (const Placed& placed : placement) {
    nodes_.WorkersLeft(placed.node);
    if (InUse(state_.snapshot, placed.node)) continue;
    unsent_.erase(placed.node);
    nodes_.Vacated(placed.node);
  }
}

void JobRunner::Remove(JobId job) {
  progress_.Remove(job);
  state_.RemoveJob(job);
}

}  // namespace renzan::cluster::local
