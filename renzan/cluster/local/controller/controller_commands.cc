#include <algorithm>
#include <filesystem>

#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/controller/measured.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

// Returns how large they were.
int64_t Controller::DropTexts(JobRecord& record) {
  const size_t bytes = record.spec.size() + record.manifest.size();
  record.spec = std::string();
  record.manifest = std::string();
  return static_cast<int64_t>(bytes);
}

PendingUse Controller::PendingUseOf(const Caller& caller) const {
  PendingUse pending;
  for (const auto& [id, live] : state_.live) {
    if (live.record.uid != caller.uid || live.record.state != RecordState::kPending) continue;
    ++pending.jobs;
    pending.text_bytes += live.text_bytes;
  }
  return pending;
}

// What a job that is refused, or that the disk does not take, has added to the snapshot goes again.
JobId Controller::Submit(const Submission& submission) {
  const size_t worker_requests = state_.snapshot.worker_requests.size(),
               users = state_.snapshot.users.size();
  try {
    return Take(submission);
  } catch (...) {
    state_.snapshot.worker_requests.resize(worker_requests);
    state_.snapshot.users.resize(users);
    throw;
  }
}

JobId Controller::Take(const Submission& submission) {
  const Caller& caller = submission.caller;
  access_.RequireCanRunAs(caller);
  const TimeMs now = Now();
  const JobId id = last_job_ + 1;
  const spec::JobSpec& spec = submission.spec;
  std::string yaml = spec::PrintJobSpec(spec);
  access_.RequireWithinLimits(caller, spec,
                              static_cast<int64_t>(yaml.size() + submission.manifest.size()),
                              PendingUseOf(caller));
  const Job job = spec::MakeJob(state_.snapshot, spec, submission.caller.name, id, now);
  if (const std::string why = options_.why_infeasible(state_.snapshot, job); !why.empty())
    Fail(ErrorCode::kConfig, "{}: this job can never run here: {}", submission.source, why);

  const Resources& per_worker = state_.snapshot.worker_requests[job.request].per_worker;
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
  log_.Commit(record, std::nullopt, "submitted", fmt::format("by {}", record.user), now);
  last_job_ = id;
  state_.snapshot.jobs.push_back(job);  // the highest id: still sorted
  LiveJob& live = state_.live[id] = {.record = std::move(record), .spec = spec};
  live.policy = RetryPolicyOf(spec);
  live.text_bytes = DropTexts(live.record);
  return id;
}

RecordState Controller::Cancel(JobId id, const Caller& caller) {
  if (const JobRecord* record = collector_.Find(id)) {
    access_.RequireOwner(*record, caller);
    collector_.Cancel(id);
    return record->state;
  }
  LiveJob& live = LiveNamed(id);
  access_.RequireOwner(live.record, caller);
  if (live.record.state == RecordState::kPending) {
    JobRecord record = live.record;
    record.state = RecordState::kCancelled;
    record.cancel_requested = true;
    record.ended = Now();
    log_.Commit(record, std::nullopt, "cancelled", fmt::format("by {}", caller.name), Now());
    Drop(id);
    return RecordState::kCancelled;
  }
  if (!live.record.cancel_requested) {
    JobRecord record = live.record;
    record.cancel_requested = true;
    record.state = RecordState::kStopping;
    log_.Commit(record, std::nullopt, "cancelling", fmt::format("by {}", caller.name), Now());
    live.record = record;
    Job* job = state_.snapshot.Find(id);
    job->state = JobState::kStopping;
    job->target.clear();
  }
  AskToStop(live);
  return live.record.state;
}

RecordState Controller::Preempt(JobId id, const Caller& caller) {
  LiveJob& live = LiveNamed(id);
  access_.RequireOwner(live.record, caller);
  if (live.record.state != RecordState::kRunning)
    Fail(ErrorCode::kUsage, "job {} does not run: it is {}", id, NameOf(live.record.state));
  PreemptJob(live, "asked by " + caller.name, 0);
  return live.record.state;
}

void Controller::Checkpoint(JobId id, const Caller& caller) {
  LiveJob& live = LiveNamed(id);
  access_.RequireOwner(live.record, caller);
  if (live.record.state != RecordState::kRunning)
    Fail(ErrorCode::kUsage, "job {} does not run: it is {}", id, NameOf(live.record.state));
  if (!live.spec.checkpoint.on_request)
    Fail(ErrorCode::kUsage,
         "job {} does not say that it checkpoints on request (checkpoint: {{on_request: true}})",
         id);
  progress_.RequestCheckpoint(live);
}

void Controller::OverrideQuota(const std::string& user, int64_t max_gpus, TimeMs for_ms,
                               const Caller& caller) {
  access_.RequireOperator(caller);
  const auto at = std::find_if(state_.snapshot.users.begin(), state_.snapshot.users.end(),
                               [&](const User& each) { return each.name == user; });
  if (at == state_.snapshot.users.end() || at->max_gpus == kUnlimited)
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
  state_.needs_scheduling = true;
}

const Snapshot& Controller::snapshot() {
  state_.snapshot.now = Now();
  return state_.snapshot;
}

JobView Controller::ViewOf(const JobRecord& record) {
  JobView view{.record = record};
  const Job* job = state_.snapshot.Find(record.id);
  if (!job) return view;
  view.scheduled = *job;
  LiveJob& live = state_.live.at(record.id);
  if (live.attempt) {
    view.placement = live.attempt->placement;
    view.progress = progress_.Read(live, Now() - 1000);
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
  const auto at = state_.live.find(id);
  if (at != state_.live.end() && at->second.policy.saves_on_stop)
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
  for (const JobRecord* record : Unfinished()) add(*record);
  std::sort(list.jobs.begin(), list.jobs.end(),
            [](const JobView& a, const JobView& b) { return a.record.id < b.record.id; });
  return list;
}

}  // namespace renzan::cluster::local
