#include <algorithm>
#include <set>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kProgressFreshMs = 2000;  // a status read so lately serves the scheduler
constexpr TimeMs kLookAgainMs = 1000;
constexpr TimeMs kRefusedAgainMs = 10'000;

std::string Describe(const NamedPlacement& placement) {
  std::string text;
  for (const NodeShare& share : placement)
    text += fmt::format("{}{} ({} worker{})", text.empty() ? "" : ", ", share.node, share.workers,
                        share.workers == 1 ? "" : "s");
  return text;
}

std::string OnBehalfOf(JobId job) { return job == 0 ? "" : fmt::format(" for job {}", job); }

}  // namespace

void Controller::Decide() {
  const TimeMs now = state_.snapshot.now;
  state_.needs_scheduling = false;
  for (auto& [id, live] : state_.live)
    if (live.record.state == RecordState::kRunning) progress_.Read(live, now - kProgressFreshMs);
  Validated validated = options_.validate(state_.snapshot, options_.schedule(state_.snapshot));
  const Decisions& decisions = validated.decisions;
  waits_.clear();
  for (const Wait& wait : decisions.waits) waits_[wait.job] = wait;
  // What is overdue has been asked for; it is not worth asking all the time.
  look_again_ = decisions.look_again > now ? decisions.look_again : now + kLookAgainMs;
  if (validated.faults != faults_)
    for (const std::string& fault : validated.faults)
      LogError("decisions that touch it are not carried out: {}", fault);
  faults_ = std::move(validated.faults);
  const std::vector<std::string>& broken = validated.violations;
  const std::string refused = std::exchange(refused_, broken.empty() ? "" : broken[0]);
  if (!refused_.empty()) {
    // Much of what is decided depends on the time: the next ones may be right.
    look_again_ = std::min(look_again_, now + kRefusedAgainMs);
    if (refused != refused_)
      LogError("the scheduler's decisions are not carried out, they are wrong: {}", refused_);
  }
  CarryOut(decisions);
}

void Controller::CarryOut(const Decisions& decisions) {
  for (const Stop& stop : decisions.stops)
    PreemptJob(state_.live.at(stop.job), NameOf(stop.reason), stop.on_behalf_of);
  for (const Resize& resize : decisions.resizes)
    ResizeJob(state_.live.at(resize.job), Named(resize.target), resize.on_behalf_of);
  for (const Start& start : decisions.starts)
    StartJob(state_.live.at(start.job), start.placement, start.backfill);
  for (const ScaleOut& scale : decisions.scale_out) nodes_.Buy(scale);
  for (const ScaleIn& scale : decisions.scale_in) nodes_.GiveBack(scale.node);
  for (const JobId job : decisions.checkpoints)
    progress_.RequestCheckpointIfDue(state_.live.at(job));
}

// The lowest devices of each node that no running worker has.
NamedPlacement Controller::WithDevices(const Placement& placement, int64_t gpus_per_worker) const {
  NamedPlacement named = Named(placement);
  for (size_t i = 0; i < named.size(); ++i) {
    std::set<int> taken;
    for (const auto& [id, live] : state_.live) {
      if (!live.attempt) continue;
      for (const NodeShare& share : live.attempt->placement)
        if (share.node == named[i].node)
          for (const auto& devices : share.devices) taken.insert(devices.begin(), devices.end());
    }
    int next = 0;
    named[i].devices.resize(named[i].workers);
    for (auto& devices : named[i].devices)
      while (static_cast<int64_t>(devices.size()) < gpus_per_worker) {
        if (!taken.count(next)) devices.push_back(next);
        ++next;
      }
    CHECK_MSG(
        next <= state_.snapshot.nodes[placement[i].node].capacity.gpu() || gpus_per_worker == 0,
        "more devices than {} has", named[i].node);
  }
  return named;
}

AttemptPlan Controller::PlanOf(const LiveJob& live) const {
  const JobRecord& record = live.record;
  const Job* job = state_.snapshot.Find(record.id);
  const Resources& per_worker = state_.snapshot.worker_requests[job->request].per_worker;
  AttemptPlan plan{.job = record.id,
                   .attempt = live.attempt->number,
                   .command = live.spec.command,
                   .environment = live.spec.environment,
                   .working_directory = live.spec.working_directory,
                   .run_dir = directories_.Of(record.id) + "/run",
                   .checkpoint_dir = directories_.Of(record.id) + "/checkpoints",
                   .uid = record.uid,
                   .gid = record.gid,
                   .grace_seconds = static_cast<double>(live.spec.grace_ms()) / 1000,
                   .saves_on_stop = live.policy.saves_on_stop,
                   .enforce_memory = options_.enforce_memory};
  if (live.policy.timeout_ms > 0)
    plan.timeout_ms = std::max<TimeMs>(1, live.policy.timeout_ms - record.run_ms);
  for (const NodeShare& share : live.attempt->placement)
    for (int worker = 0; worker < share.workers; ++worker)
      plan.workers.push_back({.node = share.node,
                              .local_rank = worker,
                              .devices = share.devices[worker],
                              .cpu_millis = per_worker[kCpu],
                              .memory_mib = per_worker[kMemory]});
  return plan;
}

// Whether it runs now.
bool Controller::StartJob(LiveJob& live, const Placement& placement, bool backfill) {
  const TimeMs now = state_.snapshot.now;
  Job* job = state_.snapshot.Find(live.record.id);
  CHECK(live.record.state == RecordState::kPending && !live.attempt);
  AttemptRecord attempt{
      .job = job->id,
      .number = live.record.attempts,
      .placement =
          WithDevices(placement, state_.snapshot.worker_requests[job->request].per_worker.gpu()),
      .started = now,
      .backfilled = backfill};
  JobRecord record = live.record;
  ++record.attempts;
  record.state = RecordState::kRunning;
  record.last_resize = now;
  if (!record.started) record.started = now;
  log_.Commit(record, attempt, "started",
              fmt::format("attempt {} on {}", attempt.number, Describe(attempt.placement)), now);
  live.record = record;
  live.attempt = attempt;
  retention_.AttemptStarted(attempt.job, attempt.number);
  progress_.AttemptStarted(job->id);
  job->state = JobState::kRunning;
  job->placement = placement;
  job->started = job->last_resize = now;
  job->last_checkpoint.reset();
  job->backfilled = backfill;
  try {
    std::optional<std::string> manifest;
    if (attempt.number == 0) manifest = store_.FindJob(job->id).value().manifest;
    directories_.Create(live.record, manifest);
    state_.watched[job->id] =
        agent_.Start(directories_.OfAttempt(job->id, attempt.number), PlanOf(live));
  } catch (const Error& error) {
    LogError("job {} cannot be started: {}", job->id, error.what());
    // Should the disk be full now, it is found again as an attempt that never was.
    changed_.insert(live.record.id);
    VoidAttempt(live, error.what());
    return false;
  }
  return true;
}

// Nothing of the attempt ever ran.
void Controller::VoidAttempt(LiveJob& live, const std::string& why) {
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  attempt.ended = Now();
  attempt.ended_by = "void";
  attempt.message = why;
  record.state = record.cancel_requested ? RecordState::kCancelled : RecordState::kPending;
  if (record.cancel_requested) record.ended = Now();
  record.eligible_at = Now() + Backoff(live.policy.backoff_ms, record.requeues);
  ++record.requeues;
  log_.Commit(record, attempt, "not_started", why, Now());
  live.record = record;
  live.attempt.reset();
  changed_.erase(record.id);
  Job* job = state_.snapshot.Find(record.id);
  job->eligible_at = record.eligible_at;
  Release(*job);
  if (HasEnded(record.state)) Drop(record.id);
}

double Controller::GraceOf(const LiveJob& live) const {
  double grace = static_cast<double>(live.spec.grace_ms()) / 1000;
  for (const Placed& placed : state_.snapshot.Find(live.record.id)->placement) {
    const Node& node = state_.snapshot.nodes[placed.node];
    if (node.state == NodeState::kDraining && node.until != kNever)
      grace = std::min(grace, std::max(0.0, static_cast<double>(node.until - Now()) / 1000));
  }
  return grace;
}

void Controller::PreemptJob(LiveJob& live, const std::string& reason, JobId on_behalf_of) {
  // It may have ended by itself a moment ago; then its end is on its way to us.
  if (live.record.state != RecordState::kRunning) return;
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  record.state = RecordState::kStopping;
  ++record.preemptions;
  attempt.stop_reason = reason + OnBehalfOf(on_behalf_of);
  attempt.stopping_for = on_behalf_of;
  StopJob(live, record, attempt);
}

void Controller::ResizeJob(LiveJob& live, const NamedPlacement& target, JobId on_behalf_of) {
  if (live.record.state != RecordState::kRunning) return;
  JobRecord record = live.record;
  AttemptRecord attempt = *live.attempt;
  record.state = RecordState::kResizing;
  attempt.stop_reason = "resized" + OnBehalfOf(on_behalf_of);
  attempt.stopping_for = on_behalf_of;
  attempt.target = target;
  StopJob(live, record, attempt);
}

void Controller::StopJob(LiveJob& live, JobRecord record, AttemptRecord attempt) {
  log_.Commit(record, attempt, NameOf(record.state), attempt.stop_reason, Now());
  live.record = std::move(record);
  live.attempt = std::move(attempt);
  Job* job = state_.snapshot.Find(live.record.id);
  job->state =
      live.record.state == RecordState::kResizing ? JobState::kResizing : JobState::kStopping;
  job->preemptions = live.record.preemptions;
  job->stopping_for = live.attempt->stopping_for;
  job->target.clear();
  for (const NodeShare& share : live.attempt->target)
    job->target.push_back({nodes_.Find(share.node), share.workers});
  AskToStop(live);
}

void Controller::AskToStop(LiveJob& live) {
  const std::string directory = directories_.OfAttempt(live.record.id, live.attempt->number);
  live.stop_unsent = false;
  progress_.StopRequested(live.record.id);
  try {
    agent_.Stop(directory, GraceOf(live));
  } catch (const Error& error) {
    // It is looked at and asked again in a moment: it may be gone, or the disk was full.
    LogWarning("job {} could not be told to stop: {}", live.record.id, error.what());
    live.stop_unsent = true;
    changed_.insert(live.record.id);
    state_.retry_at = Now() + 1000;
  }
}

}  // namespace renzan::cluster::local
