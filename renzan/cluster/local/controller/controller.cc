#include "renzan/cluster/local/controller/controller.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/measured.h"
#include "renzan/cluster/local/controller/recovered_job.h"
#include "renzan/cluster/local/controller/salvaged_job.h"
#include "renzan/cluster/spec/retry_policy.h"

namespace renzan::cluster::local {
namespace {

// How old a job's status may be, for the scheduler and for answers.
constexpr TimeMs kScheduleStatusMs = 2000, kViewStatusMs = 1000;
// When to schedule again if something is overdue, and if the decisions were invalid.
constexpr TimeMs kOverdueMs = 1000, kAfterViolationMs = 10'000;

// These texts are in the store. Returns how large they were.
int64_t DropTexts(JobRecord& record) {
  const size_t bytes = record.spec.size() + record.manifest.size();
  record.spec = std::string();
  record.manifest = std::string();
  return static_cast<int64_t>(bytes);
}

JobRecord MakeRecord(const Submission& submission, std::string yaml, const Job& job,
                     const Resources& per_worker) {
  const Caller& caller = submission.caller;
  return {.id = job.id,
          .name = submission.spec.name,
          .queue = submission.spec.queue,
          .spec = std::move(yaml),
          .source = submission.source,
          .submit_dir = submission.submit_dir,
          .user = caller.name,
          .uid = caller.uid,
          .gid = caller.gid,
          .priority = submission.spec.priority,
          .min_workers = job.min_workers,
          .max_workers = job.max_workers,
          .cpu_millis = per_worker[kCpu],
          .memory_mib = per_worker[kMemory],
          .gpus = per_worker.gpu(),
          .submitted = job.submitted,
          .manifest = submission.manifest};
}

[[noreturn]] void FailNoJob(JobId job) {
  Fail(ErrorCode::kNoInput, "there is no job {}: `renzan jobs --all` lists them", job);
}

}  // namespace

Controller::Controller(const ControllerOptions& options, Snapshot cluster, Store& store,
                       Agent& agent, const Clock& clock)
    : options_(options),
      store_(store),
      agent_(agent),
      clock_(clock),
      access_(options.uid, options.limits),
      directories_(options.state_dir),
      inherited_(options.state_dir),
      disk_(options.state_dir, options.keep_free, directories_, options.room_of),
      state_{.snapshot = std::move(cluster),
             .suspicion = Suspicion(static_cast<int>(options.node_health.suspect_after)),
             .machine_gpus = options.machine_gpus},
      pools_(state_.snapshot, store, clock),
      usage_(state_.snapshot, store, clock),
      log_(state_, store, usage_, pools_, inherited_, directories_, clock),
      collector_(options.artifacts_timeout_ms, log_, agent, directories_, inherited_,
                 state_.watched, clock),
      retention_(options.retention, store, agent, directories_, state_.watched),
      progress_(state_, store, agent, directories_, clock),
      nodes_(state_, store, pools_, clock),
      checker_({.command = options.node_health.check,
                .interval_ms = options.node_health.check_interval_ms(),
                .timeout_ms = options.node_health.check_timeout_ms(),
                .log_dir = options.state_dir},
               state_, nodes_, agent, clock),
      health_(options.node_health.early_failure_ms(), options.node_health.suspect_for_ms(), state_,
              store, nodes_, checker_),
      runner_({.state = state_,
               .log = log_,
               .store = store,
               .agent = agent,
               .nodes = nodes_,
               .health = health_,
               .progress = progress_,
               .retention = retention_,
               .collector = collector_,
               .directories = directories_,
               .inherited = inherited_,
               .clock = clock},
              options.enforced, options.node_health.early_failure_ms()),
      run_times_(store) {}

// --- Recovery.

void Controller::Recover() {
  Snapshot& snapshot = state_.snapshot;
  snapshot.now = Now();
  last_job_ = store_.LastJob();
  usage_.Recover();
  last_turn_ = usage_.accounted_until();  // an earlier clock has been set back
  clock_checked_ = snapshot.now;
  clock_checked_at_ = clock_.MonotonicSeconds();
  for (const QuotaOverrideRecord& record : store_.QuotaOverrides())
    if (record.quota_override.until > snapshot.now)
      snapshot.users[snapshot.InternUser(record.user)].quota_overrides.push_back(
          record.quota_override);
  nodes_.Recover();
  pools_.Recover();
  RecoverDamagedJobs();
  for (JobRecord& record : store_.UnfinishedJobs()) RecoverJob(std::move(record));
  nodes_.ShareDevices();
  std::set<JobId> unfinished;
  for (const JobRecord* job : Unfinished()) unfinished.insert(job->id);
  inherited_.KeepOnly(unfinished);
  health_.Recover();
  SetReservations(RecoveredReservations(), snapshot);
  usage_.Recovered();
}

// The stored reservations, without those on nodes that the configuration no longer has.
std::vector<Reservation> Controller::RecoveredReservations() {
  std::vector<Reservation> reservations;
  for (const auto& [id, live] : state_.live) {
    const NamedPlacement& kept = live.record.reservation;
    if (kept.empty() || live.record.state != RecordState::kPending) continue;
    Reservation reservation{id, {}};
    for (const NodeShare& share : kept)
      if (const int node = nodes_.Find(share.node); node >= 0)
        reservation.placement.push_back({node, share.workers});
    std::sort(reservation.placement.begin(), reservation.placement.end(),
              [](const Placed& a, const Placed& b) { return a.node < b.node; });
    if (reservation.placement.size() == kept.size()) reservations.push_back(std::move(reservation));
  }
  return reservations;
}

// A transaction for each: if the disk is full, the next daemon goes on with the others.
void Controller::RecoverDamagedJobs() {
  for (const DamagedJob& damaged : store_.DamagedJobs()) {
    std::optional<JobRecord> salvaged;
    try {
      salvaged = SalvageJob(damaged, agent_, directories_, usage_.Until(state_.snapshot.now));
    } catch (const Error& error) {
      LogError("job {}: {}; the next daemon tries again: {}", damaged.record.id,
               damaged.record.damaged, error.what());
      continue;
    }
    const JobRecord& record = *salvaged;
    store_.Transact([&] {
      store_.PutSalvaged(
          record,
          {.time = state_.snapshot.now, .kind = NameOf(record.state), .text = record.message});
    });
    if (record.ended) directories_.Trim(record.id, record.attempts);
  }
}

void Controller::RecoverJob(JobRecord record) {
  if (record.state == RecordState::kCollecting) return collector_.Recover(record);
  auto [spec, job] = JobFromRecord(state_.snapshot, record);
  const JobId id = record.id;
  LiveRecord& live = state_.live[id] = {.record = std::move(record), .spec = std::move(spec)};
  TakeGraceFromPlan(live.record, agent_, directories_, live.spec);
  live.policy = spec::RetryPolicyOf(live.spec);
  live.unusable = job.held;
  live.text_bytes = DropTexts(live.record) + inherited_.BytesOf(id);
  live.record.failed_on.clear();  // health_ knows where it still counts
  ApplyMeasured(live.record.measured, job);
  retention_.JobRecovered(id, live.record.attempts);
  state_.snapshot.jobs.push_back(job);
  runner_.Adopt(live);
}

// --- Events.

TimeMs Controller::Turn() {
  if (store_.corruption()) throw *store_.corruption();
  const TimeMs now = Now();
  CheckClock(now);
  if (now < last_turn_) ClockWentBack(now);
  last_turn_ = state_.snapshot.now = now;
  try {
    if (now >= state_.retry_at) state_.retry_at = kNever;
    WatchDisk(now);
    AdvanceNodes();
    runner_.FinishEnded();
    collector_.Advance();
    retention_.Advance(now);
    for (const int node : checker_.Advance()) health_.PassedItsCheck(node);
    if (state_.needs_scheduling || now >= schedule_at_) Schedule();
    trouble_.clear();
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    trouble_ = error.what();
    LogError("{}; trying again in {} s", error.what(), kRetryMs / 1000);
    state_.needs_scheduling = true;
    state_.retry_at = now + kRetryMs;
  }
  const TimeMs next_checkpoint = progress_.AwaitCheckpoints();
  if (state_.retry_at != kNever) return state_.retry_at;
  if (state_.needs_scheduling) return now;
  return std::min({schedule_at_, nodes_.NextEvent(), collector_.NextDeadline(),
                   retention_.next_look(), next_checkpoint, checker_.NextEvent(),
                   disk_.NextLook(!state_.watched.empty())});
}

void Controller::AdvanceNodes() {
  runner_.RetryEndWorkers();
  for (const int node : nodes_.Due()) {
    if (state_.snapshot.nodes[node].state == NodeState::kBooting) {
      nodes_.SetReady(node);
    } else if (state_.snapshot.nodes[node].state == NodeState::kCordoned) {
      health_.Reopen(node);
    } else {
      nodes_.SetGone(node);
      runner_.EndWorkersOn(node);
    }
  }
}

// One scheduling cycle.
void Controller::Schedule() {
  const TimeMs now = state_.snapshot.now;
  state_.needs_scheduling = false;
  for (const auto& [id, live] : state_.live)
    if (live.record.state == RecordState::kRunning) progress_.Read(live, now - kScheduleStatusMs);
  pools_.Observe();
  UpdateHeld();
  usage_.SetUsedLately(state_.snapshot);
  Validated validated = options_.validate(state_.snapshot, options_.schedule(state_.snapshot));
  const Decisions& decisions = validated.decisions;
  waits_.clear();
  for (const Wait& wait : decisions.waits) waits_[wait.job] = wait.reason;
  // A time that has passed already would make the daemon schedule all the time.
  schedule_at_ = decisions.look_again > now ? decisions.look_again : now + kOverdueMs;
  if (validated.faults != faults_)
    for (const std::string& fault : validated.faults)
      LogError("decisions that involve it are not carried out: {}", fault);
  faults_ = std::move(validated.faults);
  const std::vector<std::string>& violations = validated.violations;
  const std::string before = std::exchange(violation_, violations.empty() ? "" : violations[0]);
  if (!violation_.empty()) {
    // Decisions depend on the time: later ones may be valid.
    schedule_at_ = std::min(schedule_at_, now + kAfterViolationMs);
    if (before != violation_)
      LogError("invalid decisions of the scheduler are not carried out: {}", violation_);
  }
  if (options_.on_cycle)
    options_.on_cycle(state_.snapshot, decisions, [this](JobId id) {
      const auto at = state_.live.find(id);
      return record::JobName{"", at == state_.live.end() ? "" : at->second.record.name};
    });
  runner_.CarryOut(decisions);
}

// --- Commands.

PendingUse Controller::PendingUseOf(const Caller& caller) const {
  PendingUse pending;
  for (const auto& [id, live] : state_.live) {
    if (live.record.uid != caller.uid || live.record.state != RecordState::kPending) continue;
    ++pending.jobs;
    pending.text_bytes += live.text_bytes;
  }
  return pending;
}

JobId Controller::Submit(const Submission& submission) {
  const size_t requests = state_.snapshot.worker_requests.size();
  const size_t users = state_.snapshot.users.size();
  try {
    return Admit(submission);
  } catch (...) {
    // Drops what spec::MakeJob has added for it.
    state_.snapshot.worker_requests.resize(requests);
    state_.snapshot.users.resize(users);
    throw;
  }
}

JobId Controller::Admit(const Submission& submission) {
  const Caller& caller = submission.caller;
  access_.RequireCanRunAs(caller);
  WatchDisk(Now(), /*at_once=*/true);
  disk_.RequireRoom();
  const TimeMs now = Now();
  const JobId id = last_job_ + 1;
  const spec::JobSpec& spec = submission.spec;
  std::string yaml = spec::PrintJobSpec(spec);
  size_t bytes = yaml.size() + submission.manifest.size();
  if (submission.inherited) bytes += spec::InheritedToJson(*submission.inherited).size();
  access_.RequireWithinLimits(caller, spec, static_cast<int64_t>(bytes), PendingUseOf(caller));
  spec::CheckSubmission(state_.snapshot, spec, access_.SubmitterOf(caller));
  Job job = spec::MakeJob(state_.snapshot, spec, caller.name, id, now);
  if (const std::string why = options_.why_infeasible(state_.snapshot, job); !why.empty())
    Fail(ErrorCode::kConfig, "{}: this job can never run here: {}", submission.source, why);
  JobRecord record = MakeRecord(submission, std::move(yaml), job,
                                state_.snapshot.worker_requests[job.request].per_worker);
  record.waiting_since = job.waiting_since;
  job.run_time = record.run_time = run_times_.Predict(TraitsOf(record));
  // Before the job, which must not be found without it. If the daemon is killed in between, the
  // next one removes it.
  inherited_.Remove(id);
  if (submission.inherited) inherited_.Save(id, *submission.inherited);
  try {
    log_.Commit(record, std::nullopt, "submitted", fmt::format("by {}", record.user), now);
  } catch (...) {
    inherited_.Remove(id);
    throw;
  }
  last_job_ = id;
  state_.snapshot.jobs.push_back(job);  // the highest id: still sorted
  LiveRecord& live = state_.live[id] = {.record = std::move(record), .spec = spec};
  live.policy = spec::RetryPolicyOf(spec);
  DropTexts(live.record);
  live.text_bytes = static_cast<int64_t>(bytes);
  return id;
}

LiveRecord& Controller::Live(JobId job, const Caller& owner) {
  const auto at = state_.live.find(job);
  if (at != state_.live.end()) {
    access_.RequireOwner(at->second.record, owner);
    return at->second;
  }
  const auto record = store_.FindJob(job);
  if (!record) FailNoJob(job);
  access_.RequireOwner(*record, owner);
  Fail(ErrorCode::kUsage, "job {} has ended already ({})", job, NameOf(record->state));
}

LiveRecord& Controller::Running(JobId id, const Caller& owner) {
  LiveRecord& live = Live(id, owner);
  if (live.record.state != RecordState::kRunning)
    Fail(ErrorCode::kUsage, "job {} is not running (state {})", id, NameOf(live.record.state));
  return live;
}

RecordState Controller::Cancel(JobId id, const Caller& caller) {
  if (const JobRecord* record = collector_.Find(id)) {
    // Its processes have ended: only copying its artifacts can be cancelled.
    access_.RequireOwner(*record, caller);
    collector_.Cancel(id);
    return record->state;
  }
  return runner_.Cancel(Live(id, caller), caller.name);
}

RecordState Controller::Preempt(JobId id, const Caller& caller) {
  LiveRecord& live = Running(id, caller);
  runner_.Preempt(id, caller.name);
  return live.record.state;
}

void Controller::Checkpoint(JobId id, const Caller& caller) {
  const LiveRecord& live = Running(id, caller);
  if (!live.spec.checkpoint.on_request)
    Fail(ErrorCode::kUsage,
         "job {} does not say that it checkpoints on request (checkpoint: {{on_request: true}})",
         id);
  progress_.RequestCheckpoint(live);
}

// --- Queries.

const Snapshot& Controller::snapshot() {
  state_.snapshot.now = Now();
  usage_.SetUsedLately(state_.snapshot);
  return state_.snapshot;
}

Snapshot Controller::SnapshotForEstimates() {
  Snapshot copy = snapshot();
  for (Job& job : copy.jobs)
    job.run_time_now = run_times_.Predict(TraitsOf(state_.live.at(job.id).record));
  return copy;
}

std::vector<const JobRecord*> Controller::Unfinished() const {
  std::vector<const JobRecord*> jobs = collector_.Jobs();
  for (const auto& [id, live] : state_.live) jobs.push_back(&live.record);
  return jobs;
}

std::vector<UsageSpan> Controller::RunningUsage() const {
  std::vector<UsageSpan> spans;
  for (const auto& [id, live] : state_.live)
    if (live.record.attempt) spans.push_back(usage_.SpanOf(live.record, *live.record.attempt));
  return spans;
}

JobView Controller::ViewOf(const JobRecord& record) {
  JobView view{.record = record};
  const Job* job = state_.snapshot.Find(record.id);
  if (!job) return view;
  view.scheduled = *job;
  const LiveRecord& live = state_.live.at(record.id);
  if (live.record.attempt) {
    view.placement = live.record.attempt->placement;
    view.progress = progress_.Read(live, Now() - kViewStatusMs);
  }
  const auto wait = waits_.find(record.id);
  if (record.state == RecordState::kPending && wait != waits_.end())
    view.reason = !live.record.held_by.empty() ? "held"
                  : disk_.nearly_full()        ? "disk nearly full"
                                               : NameOf(wait->second);
  return view;
}

JobView Controller::View(JobId id) {
  const auto at = state_.live.find(id);
  std::optional<JobRecord> record;
  std::string texts_damaged;
  const JobRecord* const kept = at == state_.live.end() ? collector_.Find(id) : &at->second.record;
  if (kept == nullptr) {
    record = store_.FindJob(id);
  } else {
    record = *kept;  // whatever has become of the stored one
    const std::optional<JobTexts> texts = store_.TextsOf(id);
    if (texts)
      std::tie(record->spec, record->manifest) = std::tie(texts->spec, texts->manifest);
    else if (record->damaged.empty())
      texts_damaged = "its specification in state.db is damaged: the next daemon ends the job";
  }
  if (!record) FailNoJob(id);
  JobView view = ViewOf(*record);
  if (at != state_.live.end() && at->second.policy.saves_on_stop)
    view.warning = SlowCheckpointText(record->measured, at->second.spec.grace_ms());
  if (!texts_damaged.empty()) view.warning = texts_damaged;
  if (!record->damaged.empty())
    view.warning = record->ended ? record->damaged
                                 : record->damaged + ", so it is being ended: submit it again";
  return view;
}

JobRecord Controller::Record(JobId id) {
  if (const auto at = state_.live.find(id); at != state_.live.end()) return at->second.record;
  if (const JobRecord* record = collector_.Find(id)) return *record;
  const auto record = store_.FindJob(id);
  if (!record) FailNoJob(id);
  return *record;
}

JobList Controller::List(const JobFilter& filter) {
  const EndedFilter& wanted = filter.ended;
  JobList list;
  std::vector<JobRecord> ended;
  if (!wanted.state || HasEnded(*wanted.state)) {
    ended = store_.EndedJobs(wanted, filter.most_ended);
    list.more = store_.CountEnded(wanted) - static_cast<int64_t>(ended.size());
  }
  for (JobRecord& record : ended) list.jobs.push_back({.record = std::move(record)});
  if (wanted.before != kNever) return list;
  for (const JobRecord* record : Unfinished()) {
    if ((!wanted.queue || record->queue == *wanted.queue) &&
        (!wanted.user || record->user == *wanted.user) &&
        (!wanted.state || record->state == *wanted.state))
      list.jobs.push_back(ViewOf(*record));
  }
  std::sort(list.jobs.begin(), list.jobs.end(),
            [](const JobView& a, const JobView& b) { return a.record.id < b.record.id; });
  return list;
}

}  // namespace renzan::cluster::local
