#include "renzan/cluster/local/controller/job_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/engine/lifecycle.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/recovered_job.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {
namespace {

bool IsOn(const Placement& placement, int node) {
  return std::any_of(placement.begin(), placement.end(),
                     [&](const Placed& placed) { return placed.node == node; });
}

bool IsStopping(JobState state) {
  return state == JobState::kStopping || state == JobState::kResizing;
}

bool Fits(const Snapshot& snapshot, const Job& job, const Placement& placement) {
  const Resources& per_worker = snapshot.worker_requests[job.request].per_worker;
  return std::all_of(placement.begin(), placement.end(), [&](const Placed& placed) {
    const Node& node = snapshot.nodes[placed.node];
    return node.state == NodeState::kReady &&
           (UsedOn(snapshot, placed.node) + per_worker * placed.workers).FitsIn(node.capacity);
  });
}

}  // namespace

std::string JobRunner::DirectoryOf(const LiveJob& live) const {
  return directories_.OfAttempt(live.record.id, live.attempt->number);
}

// --- Start and stop.

void JobRunner::CarryOut(const Decisions& decisions) {
  cluster::CarryOut(decisions, state_.snapshot, *this);
}

void JobRunner::Preempt(JobId job, const std::string& user) {
  cluster::CarryOut(Stop{job, StopReason::kRequested, 0, user}, state_.snapshot, *this);
}

void JobRunner::Commit(const Start& start) {
  // A turn takes time: account for usage until now.
  const TimeMs now = state_.snapshot.now = Now();
  LiveJob& live = Live(start.job);
  CHECK(live.record.state == RecordState::kPending && !live.attempt);
  Job after = *state_.snapshot.Find(start.job);
  const Resources& per_worker = state_.snapshot.worker_requests[after.request].per_worker;
  AttemptRecord attempt;
  attempt.job = start.job;
  attempt.number = live.record.attempts;
  JobRecord record = live.record;
  StartGang(after, start.placement, start.backfill, now);
  BeginAttempt(after, WithDevices(state_, start.placement, per_worker.gpu()), record, attempt);
  log_.Commit(record, attempt, "started",
              fmt::format("attempt {} on {}", attempt.number, Describe(attempt.placement)), now);
  live.record = record;
  live.attempt = attempt;
}

void JobRunner::Perform(const Start& start) {
  LiveJob& live = Live(start.job);
  const JobRecord& record = live.record;
  const int request = state_.snapshot.Find(record.id)->request;
  retention_.AttemptStarted(record.id, live.attempt->number);
  progress_.AttemptStarted(record.id);
  try {
    std::optional<std::string> manifest;
    if (live.attempt->number == 0) manifest = store_.FindJob(record.id).value().manifest;
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

void JobRunner::CommitStop(const Job& after, const std::string& kind, const std::string& why) {
  LiveJob& live = Live(after.id);
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  StopAttempt(after, state_.snapshot, why, record, attempt);
  log_.Commit(record, attempt, kind, why, Now());
  live.record = record;
  live.attempt = attempt;
}

void JobRunner::Commit(const Stop& stop) {
  Job after = *state_.snapshot.Find(stop.job);
  StopGang(after, stop);
  CommitStop(after, NameOf(RecordState::kStopping), TextOf(stop));
}

void JobRunner::Perform(const Stop& stop) { SendStop(Live(stop.job)); }

void JobRunner::Commit(const Resize& resize) {
  Job after = *state_.snapshot.Find(resize.job);
  MoveGang(after, resize);
  CommitStop(after, NameOf(RecordState::kResizing), TextOf(resize, state_.snapshot));
}

void JobRunner::Perform(const Resize& resize) { SendStop(Live(resize.job)); }

void JobRunner::Commit(const NodeChange& change) { nodes_.Commit(change); }

void JobRunner::Commit(const std::vector<Reservation>& reservations) {
  std::vector<ReservationRecord> records;
  for (const Reservation& reservation : reservations)
    records.push_back({reservation.job, WithNames(state_.snapshot, reservation.placement)});
  const std::vector<JobId> freed = NoLongerBackfilled(reservations, state_.snapshot);
  store_.Transact([&] {
    store_.PutReservations(records);
    for (const JobId job : freed) {
      AttemptRecord attempt = *Live(job).attempt;
      attempt.backfilled = false;
      store_.Put(attempt);
    }
  });
  for (const JobId job : freed) Live(job).attempt->backfilled = false;
}

void JobRunner::Perform(const CheckpointRequest& request) {
  progress_.RequestCheckpointIfDue(Live(request.job));
}

RecordState JobRunner::Cancel(LiveJob& live, const std::string& user) {
  JobRecord record = live.record;
  record.cancel_requested = true;
  if (record.state == RecordState::kPending) {
    record.state = RecordState::kCancelled;
    record.ended = Now();
    log_.Commit(record, std::nullopt, "cancelled", fmt::format("by {}", user), Now());
    Remove(record.id);
    return RecordState::kCancelled;
  }
  if (!live.record.cancel_requested) {
    Job& job = *state_.snapshot.Find(record.id);
    Job after = job;
    EvictGang(after);
    AttemptRecord attempt = *live.attempt;
    StopAttempt(after, state_.snapshot, attempt.stop_reason, record, attempt);
    log_.Commit(record, attempt, "cancelling", fmt::format("by {}", user), Now());
    live.record = record;
    live.attempt = attempt;
    job = after;
  }
  SendStop(live);
  return live.record.state;
}

void JobRunner::SendStop(LiveJob& live) {
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

void JobRunner::SendTimeLimit(LiveJob& live) {
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

double JobRunner::GraceOf(const LiveJob& live) const {
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
      LoseTarget(live, name);
  }
  if (all_sent) unsent_.erase(node);
}

void JobRunner::RetryEndWorkers() {
  for (const int node : std::set<int>(unsent_)) EndWorkersOn(node);
}

// False: the request could not be written.
bool JobRunner::EndOnFailedNode(LiveJob& live, const std::string& node) {
  if (live.record.state == RecordState::kRunning) {
    Evict(live, fmt::format("node {} failed", node));
  }
  try {
    agent_.NodeFailed(DirectoryOf(live), node);
  } catch (const Error& error) {
    LogWarning("job {}: {}", live.record.id, error.what());
    state_.retry_at = Now() + kRetryMs;
    return false;
  }
  return true;
}

// The job finishes saving its work, and then waits.
void JobRunner::LoseTarget(LiveJob& live, const std::string& node) {
  Evict(live, fmt::format("node {}, to which it was to move, failed", node));
}

void JobRunner::Evict(LiveJob& live, const std::string& why) {
  Job& job = *state_.snapshot.Find(live.record.id);
  Job after = job;
  EvictGang(after);
  CommitStop(after, "node_failed", why);
  job = after;
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
    if (at == state_.live.end() || !at->second.attempt) continue;
    LiveJob& live = at->second;
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
AttemptReport JobRunner::Report(const LiveJob& live) {
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
AttemptEnd JobRunner::LostEnd(const LiveJob& live) const {
  const TimeMs ended = live.lost_at.value_or(state_.snapshot.now);
  return {.by = EndedBy::kLost,
          .message =
              "its supervisor ended without a report: it was killed, or the machine was restarted",
          .ended_ms = ended,
          .ran_ms = std::max<TimeMs>(0, ended - live.attempt->started)};
}

AttemptEnd JobRunner::EndWithoutStart(const LiveJob& live, const std::string& why) const {
  return {.by = EndedBy::kNeverStarted,
          .message = why,
          .ended_ms = std::max(live.attempt->started, log_.Until(Now()))};
}

void JobRunner::Finish(LiveJob& live, const AttemptEnd& end) {
  const JobId id = live.record.id;
  if (end.by == EndedBy::kLost) KillLeftOvers(id, DirectoryOf(live));
  if (HasRun(end.by)) progress_.MeasureEnd(live, end);
  Job& job = *state_.snapshot.Find(id);
  Job after = job;
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  AttemptFacts facts = attempt;
  const TimeMs now = state_.snapshot.now;
  const EndedAttempt result = EndAttempt(
      end, {live.policy, record.cancel_requested, early_failure_ms_}, now, after, record, facts);
  const Outcome& outcome = result.outcome;
  std::optional<EarlyFailure> early;
  if (!result.failed_early_on.empty())
    early = {.job = id, .node = result.failed_early_on, .user = record.user, .time = now};
  attempt.ended = end.ended_ms;
  attempt.ended_by = NameOf(end.by);
  attempt.message = record.message = end.message;
  if (HasRun(end.by)) attempt.exit_code = end.exit_code;

  const Outputs outputs = HasEnded(record.state) ? OutputsOf(live.spec) : Outputs();
  const CollectionRecord collection{
      .job = id, .becomes = record.state, .ended = end.ended_ms, .text = outcome.text};
  if (!outputs.empty()) {
    record.state = RecordState::kCollecting;
    record.ended.reset();
  }
  log_.Commit(record, attempt,
              end.by == EndedBy::kNeverStarted && !HasEnded(outcome.state) ? "not_started"
                                                                           : NameOf(record.state),
              outputs.empty() ? outcome.text
                              : fmt::format("{}; {}", outcome.text, WhatIsCollected(outputs)),
              std::min(end.ended_ms, now), outputs.empty() ? nullptr : &collection,
              early ? &*early : nullptr);

  const Start restart{id, job.target, job.backfilled};
  const Placement placement = job.placement;
  job = after;
  live.record = record;
  live.attempt.reset();
  live.lost_at.reset();
  live.limit_unsent = false;
  to_check_.erase(id);
  progress_.AttemptEnded(id);
  Release(id, placement);
  if (HasEnded(outcome.state)) {
    Remove(id);
    if (!outputs.empty()) collector_.Start(record, collection, outputs);
  } else if (outcome.state == RecordState::kResizing && !restart.placement.empty() &&
             Fits(state_.snapshot, job, restart.placement)) {
    cluster::CarryOut(restart, state_.snapshot, *this);
  }
  if (HasRun(end.by))
    health_.AttemptEnded(attempt, record.user, end.ran_ms, outcome.state == RecordState::kDone,
                         early);
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
