#include <algorithm>
#include <filesystem>

#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/measured.h"
#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

bool Controller::IsOperator(const Caller& caller) const {
  return caller.uid == options_.uid || caller.uid == 0;
}

// Returns how large they were.
int64_t Controller::ForgetTexts(JobRecord& record) {
  const size_t bytes = record.spec.size() + record.manifest.size();
  record.spec = std::string();
  record.manifest = std::string();
  return static_cast<int64_t>(bytes);
}

void Controller::RequireWithinLimits(const Submission& submission, int64_t text_bytes) const {
  const Caller& caller = submission.caller;
  const spec::JobSpec& spec = submission.spec;
  if (IsOperator(caller)) return;
  const spec::ClusterConfig::LimitsConfig& limits = options_.limits;
  constexpr const char* kWhoMay = "the operator may, or may raise";
  if (spec.priority > limits.max_priority)
    Fail(ErrorCode::kNoPermission,
         "priority {}: you may submit jobs with a priority of at most {} ({} limits.max_priority)",
         spec.priority, limits.max_priority, kWhoMay);
  if (spec.grand_challenge && !limits.grand_challenge)
    Fail(ErrorCode::kNoPermission,
         "grand_challenge: you may not stop everybody's jobs ({} limits.grand_challenge)", kWhoMay);
  if (!spec.preemptible && !limits.not_preemptible)
    Fail(ErrorCode::kNoPermission,
         "preemptible: false: your jobs must be preemptible ({} limits.not_preemptible)", kWhoMay);
  int64_t pending = 0, bytes = text_bytes;
  for (const auto& [id, live] : live_) {
    if (live.record.uid != caller.uid || live.record.state != RecordState::kPending) continue;
    ++pending;
    bytes += live.text_bytes;
  }
  if (pending >= limits.max_pending_jobs)
    Fail(ErrorCode::kNoPermission,
         "you have {} pending jobs, and may have at most {}: wait until some have started ({} "
         "limits.max_pending_jobs)",
         pending, limits.max_pending_jobs, kWhoMay);
  const int64_t most = spec::ParseMebibytes(limits.max_pending_specs) << 20;
  if (bytes > most)
    Fail(ErrorCode::kNoPermission,
         "the specifications of your {} pending jobs and of this one take {} KiB, and may take {} "
         "KiB: wait until some have started, or keep large data in files ({} "
         "limits.max_pending_specs)",
         pending, bytes >> 10, most >> 10, kWhoMay);
}

// What a job that is refused, or that the disk does not take, has added to the snapshot goes again.
JobId Controller::Submit(const Submission& submission) {
  const size_t worker_requests = snapshot_.worker_requests.size(), users = snapshot_.users.size();
  try {
    return Take(submission);
  } catch (...) {
    snapshot_.worker_requests.resize(worker_requests);
    snapshot_.users.resize(users);
    throw;
  }
}

JobId Controller::Take(const Submission& submission) {
  const Caller& caller = submission.caller;
  if (options_.uid != 0 && caller.uid != options_.uid)
    Fail(ErrorCode::kNoPermission,
         "this daemon can run jobs only as the user who started it (user id {}): submit it as that "
         "user, or start a daemon of your own with `renzan cluster up`",
         options_.uid);
  const TimeMs now = Now();
  const JobId id = last_job_ + 1;
  const spec::JobSpec& spec = submission.spec;
  std::string yaml = spec::PrintJobSpec(spec);
  RequireWithinLimits(submission, static_cast<int64_t>(yaml.size() + submission.manifest.size()));
  const Job job = spec::MakeJob(snapshot_, spec, submission.caller.name, id, now);
  if (const std::string why = options_.why_infeasible(snapshot_, job); !why.empty())
    Fail(ErrorCode::kConfig, "{}: this job can never run here: {}", submission.source, why);

  const Resources& per_worker = snapshot_.worker_requests[job.request].per_worker;
  JobRecord record{.id = id,
                   .name = spec.name,
                   .queue = spec.queue,
                   .spec = std::move(yaml),
                   .source = submission.source,
                   .submit_dir = submission.submit_dir,
                   .user = submission.caller.name,
                   .uid = submission.caller.uid,
                   .gid = submission.caller.gid,
                   .priority = spec.priority,
                   .min_workers = job.min_workers,
                   .max_workers = job.max_workers,
                   .cpu_millis = per_worker[kCpu],
                   .memory_mib = per_worker[kMemory],
                   .gpus = per_worker.gpu(),
                   .submitted = now,
                   .manifest = submission.manifest};
  Commit(record, std::nullopt, "submitted", fmt::format("by {}", record.user), now);
  last_job_ = id;
  snapshot_.jobs.push_back(job);  // the highest id: still sorted
  LiveJob& live = live_[id] = {.record = std::move(record), .spec = spec};
  live.policy = RetryPolicyOf(spec);
  live.text_bytes = ForgetTexts(live.record);
  return id;
}

RecordState Controller::Cancel(JobId id, const Caller& caller) {
  if (const auto at = collections_.find(id); at != collections_.end()) {
    // It has ended; what is left is to collect its artifacts.
    RequireOwner(at->second.record, caller);
    if (at->second.child != 0) agent_.StopCopying(at->second.child);
    return at->second.record.state;
  }
  LiveJob& live = LiveNamed(id);
  RequireOwner(live.record, caller);
  if (live.record.state == RecordState::kPending) {
    JobRecord record = live.record;
    record.state = RecordState::kCancelled;
    record.cancel_requested = true;
    record.ended = Now();
    Commit(record, std::nullopt, "cancelled", fmt::format("by {}", caller.name), Now());
    Forget(id);
    return RecordState::kCancelled;
  }
  if (!live.record.cancel_requested) {
    JobRecord record = live.record;
    record.cancel_requested = true;
    record.state = RecordState::kStopping;
    Commit(record, std::nullopt, "cancelling", fmt::format("by {}", caller.name), Now());
    live.record = record;
    Job* job = snapshot_.Find(id);
    job->state = JobState::kStopping;
    job->target.clear();
  }
  AskToStop(live);
  return live.record.state;
}

RecordState Controller::Preempt(JobId id, const Caller& caller) {
  LiveJob& live = LiveNamed(id);
  RequireOwner(live.record, caller);
  if (live.record.state != RecordState::kRunning)
    Fail(ErrorCode::kUsage, "job {} does not run: it is {}", id, NameOf(live.record.state));
  PreemptJob(live, "asked by " + caller.name, 0);
  return live.record.state;
}

void Controller::Checkpoint(JobId id, const Caller& caller) {
  LiveJob& live = LiveNamed(id);
  RequireOwner(live.record, caller);
  if (live.record.state != RecordState::kRunning)
    Fail(ErrorCode::kUsage, "job {} does not run: it is {}", id, NameOf(live.record.state));
  if (!live.spec.checkpoint.on_request)
    Fail(ErrorCode::kUsage,
         "job {} does not say that it checkpoints on request (checkpoint: {{on_request: true}})",
         id);
  AskForCheckpoint(live);
}

void Controller::OverrideQuota(const std::string& user, int64_t max_gpus, TimeMs for_ms,
                               const Caller& caller) {
  RequireOperator(caller);
  const auto at = std::find_if(snapshot_.users.begin(), snapshot_.users.end(),
                               [&](const User& each) { return each.name == user; });
  if (at == snapshot_.users.end() || at->max_gpus == kUnlimited)
    Fail(ErrorCode::kUsage,
         "user {} has no cap that could be raised: caps are set in the configuration (users: {{{}: "
         "{{max_gpus: 8}}}})",
         user, user);
  if (max_gpus <= at->max_gpus)
    Fail(ErrorCode::kUsage, "user {} may have {} GPUs anyway: an override raises that", user,
         at->max_gpus);
  const QuotaOverrideRecord quota_override{user, {.max_gpus = max_gpus, .until = Now() + for_ms}};
  store_.Transact([&] { store_.Put(quota_override); });
  at->quota_overrides.push_back(quota_override.quota_override);
  dirty_ = true;
}

const Snapshot& Controller::snapshot() {
  snapshot_.now = Now();
  return snapshot_;
}

JobView Controller::ViewOf(const JobRecord& record) {
  JobView view{.record = record};
  const Job* job = snapshot_.Find(record.id);
  if (!job) return view;
  view.scheduled = *job;
  LiveJob& live = live_.at(record.id);
  if (live.attempt) {
    view.placement = live.attempt->placement;
    ReadProgress(live, Now() - 1000);
    view.progress = live.progress;
  }
  const auto wait = waits_.find(record.id);
  if (record.state == RecordState::kPending && wait != waits_.end())
    view.reason = NameOf(wait->second.reason);
  return view;
}

JobView Controller::View(JobId id) {
  const auto record = store_.FindJob(id);
  if (!record) Fail(ErrorCode::kNoInput, "there is no job {}: `renzan jobs --all` lists them", id);
  JobView view = ViewOf(*record);
  view.measured = store_.MeasuredOf(id);
  const auto at = live_.find(id);
  if (at != live_.end() && at->second.policy.saves_on_stop)
    view.warning = SlowCheckpointText(view.measured, at->second.spec.grace_ms());
  return view;
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
  const auto add = [&](const JobRecord& record) {
    if ((wanted.queue && record.queue != *wanted.queue) ||
        (wanted.user && record.user != *wanted.user) ||
        (wanted.state && record.state != *wanted.state))
      return;
    list.jobs.push_back(ViewOf(record));
  };
  for (const auto& [id, live] : live_) add(live.record);
  for (const auto& [id, collection] : collections_) add(collection.record);
  std::sort(list.jobs.begin(), list.jobs.end(),
            [](const JobView& a, const JobView& b) { return a.record.id < b.record.id; });
  return list;
}

}  // namespace renzan::cluster::local
