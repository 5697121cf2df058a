#include "renzan/cluster/local/controller/job_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/attempt_plan.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/recovered_job.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {
namespace {

// After an attempt this long, fruitless requeues are counted anew.
constexpr TimeMs kFruitfulMs = 600'000;

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
  const Job& job = *state_.snapshot.Find(start.job);
  const Resources& per_worker = state_.snapshot.worker_requests[job.request].per_worker;
  AttemptRecord attempt{.job = job.id,
                        .number = live.record.attempts,
                        .placement = WithDevices(state_, start.placement, per_worker.gpu()),
                        .started = now,
                        .backfilled = start.backfill};
  JobRecord record = live.record;
  ++record.attempts;
  record.state = RecordState::kRunning;
  record.last_resize = now;
  if (!record.started) record.started = now;
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
        DirectoryOf(live), MakeAttemptPlan(live, per_worker, directories_,
                                           inherited_.PathOf(record.id), enforce_memory_));
  } catch (const Error& error) {
    LogError("job {} cannot be started: {}", record.id, error.what());
    // If the disk is full now, FinishEnded() finds an attempt that never started.
    to_check_.insert(record.id);
    FinishNeverStarted(live, error.what());
  }
}

void JobRunner::Commit(const Stop& stop) {
  LiveJob& live = Live(stop.job);
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  record.state = RecordState::kStopping;
  ++record.preemptions;
  attempt.stop_reason = TextOf(stop);
  attempt.stopping_for = stop.on_behalf_of;
  log_.Commit(record, attempt, NameOf(record.state), attempt.stop_reason, Now());
  live.record = record;
  live.attempt = attempt;
}

void JobRunner::Perform(const Stop& stop) { SendStop(Live(stop.job)); }

void JobRunner::Commit(const Resize& resize) {
  LiveJob& live = Live(resize.job);
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  record.state = RecordState::kResizing;
  record.preemptions += resize.on_behalf_of != 0;
  attempt.stop_reason = TextOf(resize, state_.snapshot);
  attempt.stopping_for = resize.on_behalf_of;
  attempt.target = WithNames(state_.snapshot, resize.target);
  log_.Commit(record, attempt, NameOf(record.state), attempt.stop_reason, Now());
  live.record = record;
  live.attempt = attempt;
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
    record.state = RecordState::kStopping;
    log_.Commit(record, std::nullopt, "cancelling", fmt::format("by {}", user), Now());
    live.record = record;
    EvictGang(*state_.snapshot.Find(record.id));
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
    JobRecord record = live.record;
    AttemptRecord attempt = *live.attempt;
    record.state = RecordState::kStopping;
    attempt.stop_reason = fmt::format("node {} failed", node);
    log_.Commit(record, attempt, "node_failed", attempt.stop_reason, Now());
    live.record = record;
    live.attempt = attempt;
    EvictGang(*state_.snapshot.Find(record.id));
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
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  record.state = RecordState::kStopping;
  attempt.target.clear();
  attempt.stop_reason = fmt::format("node {}, to which it was to move, failed", node);
  log_.Commit(record, attempt, "node_failed", attempt.stop_reason, Now());
  live.record = record;
  live.attempt = attempt;
  EvictGang(*state_.snapshot.Find(record.id));
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
    std::optional<AttemptEnd> end;
  };
  std::vector<Ended> ended;
  std::vector<JobId> never_started;
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
      continue;
    }
    if (report.phase == AttemptPhase::kNone) {
      never_started.push_back(id);
      continue;
    }
    const TimeMs time =
        report.end ? report.end->ended_ms : live.lost_at.value_or(state_.snapshot.now);
    ended.push_back({time, id, report.end});
  }
  // Kept until each end is committed, in case the disk is full.
  to_check_.insert(never_started.begin(), never_started.end());
  for (const Ended& each : ended) to_check_.insert(each.job);
  for (const JobId id : never_started)
    FinishNeverStarted(state_.live.at(id), "it could not be started");
  // In the order in which they ended, so that usage at each moment is that of what ran then.
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Ended& a, const Ended& b) { return a.time < b.time; });
  for (const Ended& each : ended) {
    Finish(state_.live.at(each.job), each.end);
    to_check_.erase(each.job);
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

std::optional<EarlyFailure> JobRunner::EarlyFailureOf(const LiveJob& live, AttemptEnd end,
                                                      const Outcome& outcome) const {
  // It may not be known which worker was the first.
  const NamedPlacement& placement = live.attempt->placement;
  if (end.failed_on.empty() && placement.size() == 1) end.failed_on = placement[0].node;
  const std::string node = FailedEarlyOn(end, outcome, early_failure_ms_);
  if (node.empty()) return std::nullopt;
  return EarlyFailure{
      .job = live.record.id, .node = node, .user = live.record.user, .time = state_.snapshot.now};
}

void JobRunner::Finish(LiveJob& live, const std::optional<AttemptEnd>& end) {
  const JobId id = live.record.id;
  if (!end) KillLeftOvers(id, DirectoryOf(live));
  const RunHistory history{.state = live.record.state,
                           .cancel_requested = live.record.cancel_requested,
                           .stop_reason = live.attempt->stop_reason,
                           .failures = live.record.failures,
                           .requeues = live.record.requeues,
                           .run_ms = live.record.run_ms};
  const Outcome outcome = end ? OutcomeOf(history, *end, live.policy)
                              : OutcomeOfLost(history, live.policy,
                                              "its supervisor ended without a report: it was "
                                              "killed, or the machine was restarted");
  if (end) progress_.MeasureEnd(live, *end);
  const std::optional<EarlyFailure> early =
      end ? EarlyFailureOf(live, *end, outcome) : std::nullopt;
  const EarlyFailure* early_failure = early ? &*early : nullptr;
  const TimeMs now = state_.snapshot.now;
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  const TimeMs ended = end ? end->ended_ms : live.lost_at.value_or(now);
  const TimeMs ran = end ? end->ran_ms : std::max<TimeMs>(0, ended - attempt.started);
  attempt.ended = ended;
  attempt.ended_by = end ? NameOf(end->by) : "lost";
  attempt.message = end ? end->message : outcome.text;
  if (end) attempt.exit_code = record.exit_code = end->exit_code;
  record.message = attempt.message;
  record.run_ms += ran;
  record.failures += outcome.failure;
  record.requeues = !outcome.requeue ? 0 : ran >= kFruitfulMs ? 1 : record.requeues + 1;
  record.eligible_at = now + outcome.backoff_ms;
  record.state = HasEnded(outcome.state) ? outcome.state : RecordState::kPending;
  const Outputs outputs = HasEnded(record.state) ? OutputsOf(live.spec) : Outputs();
  const CollectionRecord collection{
      .job = id, .becomes = record.state, .ended = ended, .text = outcome.text};
  if (!outputs.empty()) {
    record.state = RecordState::kCollecting;
    log_.Commit(record, attempt, NameOf(record.state),
                fmt::format("{}; {}", outcome.text, WhatIsCollected(outputs)), std::min(ended, now),
                &collection, early_failure);
  } else {
    if (HasEnded(record.state)) record.ended = ended;
    log_.Commit(record, attempt, NameOf(record.state), outcome.text, std::min(ended, now), nullptr,
                early_failure);
  }

  live.record = record;
  live.attempt.reset();
  live.lost_at.reset();
  progress_.AttemptEnded(id);
  Job* job = state_.snapshot.Find(id);
  job->eligible_at = outcome.backoff_ms == 0 ? 0 : record.eligible_at;
  const cluster::Start restart{id, job->target, job->backfilled};
  Release(*job, ended);
  if (early) FailedEarly(*job, early->node);
  if (HasEnded(outcome.state)) {
    Remove(id);
    if (!outputs.empty()) collector_.Start(record, collection, outputs);
  } else if (outcome.state == RecordState::kResizing && !restart.placement.empty() &&
             Fits(state_.snapshot, *job, restart.placement)) {
    cluster::CarryOut(restart, state_.snapshot, *this);
  }
  if (end)
    health_.AttemptEnded(attempt, record.user, ran, outcome.state == RecordState::kDone, early);
}

void JobRunner::FinishNeverStarted(LiveJob& live, const std::string& why) {
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  attempt.ended = log_.Until(Now());
  attempt.ended_by = "void";
  attempt.message = why;
  record.state = record.cancel_requested ? RecordState::kCancelled : RecordState::kPending;
  if (record.cancel_requested) record.ended = Now();
  record.eligible_at = Now() + Backoff(live.policy.backoff_ms, record.requeues);
  ++record.requeues;
  log_.Commit(record, attempt, "not_started", why, Now());
  live.record = record;
  live.attempt.reset();
  to_check_.erase(record.id);
  Job* job = state_.snapshot.Find(record.id);
  job->eligible_at = record.eligible_at;
  Release(*job, *attempt.ended);
  if (HasEnded(record.state)) Remove(record.id);
}

// The job has had no workers since `when`.
void JobRunner::Release(Job& job, TimeMs when) {
  const Placement placement = job.placement;
  RequeueGang(job, when);
  state_.watched.erase(job.id);
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
