// Jobs as users and the server see them: new ones, edits, requests, and what has to be read again.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/controller.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"
#include "renzan/cluster/spec/retry_policy.h"

namespace renzan::cluster::kubernetes {

void Controller::CheckWriter(const GangJob& job) const {
  const GangJobStatus& status = job.status;
  if (begun_ && status.writer != options_.identity && status.term >= last_term_)
    Fail(ErrorCode::kTempFail, "{} leads, as the status of gangjob {} says: restart this replica",
         status.writer, job.path());
}

void Controller::Begin() {
  std::vector<GangJob> jobs;
  for (auto& [uid, job] : std::exchange(arrived_, {})) jobs.push_back(std::move(job));
  SortByArrival(jobs);
  for (const GangJob& job : jobs) last_job_ = std::max(last_job_, job.status.id);
  for (GangJob& job : jobs) Admit(std::move(job));
}

void Controller::Admit(GangJob object) {
  GangJobStatus& status = object.status;
  const bool is_new = status.id == 0;
  if (is_new) {
    status.waiting_since = object.created;
    // A request made while it had nothing to save or to stop.
    status.checkpoint_request = object.checkpoint_request;
    status.preempt_request = object.preempt_request;
    status.run_time = ended_.Predict(object);
  }
  // Two leaders may have assigned a number twice, or this one has not seen before what another
  // assigned.
  last_job_ = std::max(last_job_, status.id);
  const bool needs_id = is_new || runner_.live().contains(status.id);
  if (needs_id) status.id = ++last_job_;
  Job job{.id = object.status.id};
  Specify(object, inventory_, snapshot_, job);
  const JobId id = job.id;
  const bool cancelled = object.cancelled;
  const bool is_observed = object.status.observed_generation == object.generation;
  // Whether the job's pods are workers or use room as pods of others is to be decided again.
  pods_.TouchNodesOf(object.uid);
  runner_.Add(std::move(object), std::move(job));
  if (const auto live = runner_.live().find(id); live != runner_.live().end())
    TakeOver(live->second, *snapshot_.Find(id));
  if (needs_id || !is_observed) runner_.Write(id);
  // A request made while nobody led, or forgotten with a state that could not be written.
  if (const auto live = runner_.live().find(id); live != runner_.live().end())
    HonourRequests(live->second);
  if (cancelled) runner_.Cancel(id, "cancelled");
  needs_scheduling_ = true;
}

void Controller::TakeOver(LiveGang& live, Job& job) {
  const GangJobStatus& status = live.object.status;
  if (live.workers.empty() || status.started_generation == live.object.generation) return;
  live.edited = true;
  for (const Pod* pod : pods_.OfJob(live.object.uid))
    if (pod->attempt == status.attempts - 1) {
      WorkerRequest request = snapshot_.worker_requests[job.request];
      request.per_worker = RequestFrom(pod->request, snapshot_);
      job.request = snapshot_.InternRequest(request);
    }
  if (job.state != JobState::kRunning) return;
  const int workers = static_cast<int>(live.workers.size());
  if (!job.checkpoints && (workers < job.min_workers || workers > job.max_workers))
    job.min_workers = job.max_workers = workers;
  Edit(live);
}

void Controller::Update(LiveGang& live, GangJob object) {
  // Only we write the status. If it has changed nevertheless, by a write of ours that got no answer
  // or by another replica, what we know of the job is not what the server has.
  if (At(*object.object, {"status"}) != At(*live.object.object, {"status"})) {
    runner_.ReloadLater(live.object.status.id);
    return;
  }
  object.status = live.object.status;
  // Whoever moved it was checked by the webhook, then at the latest.
  if (object.spec.queue != live.object.spec.queue) object.status.moved = Now();
  const bool changed = object.generation != live.object.generation;
  const bool was_cancelled = live.object.cancelled;
  live.object = std::move(object);
  HonourRequests(live);
  if (!changed) return;
  needs_scheduling_ = true;
  const JobId id = live.object.status.id;
  runner_.Write(id);  // which generation has been observed
  if (live.object.cancelled && !was_cancelled) {
    runner_.Cancel(id, "cancelled");
    return;
  }
  live.policy = spec::RetryPolicyOf(live.object.spec);
  Job& job = *snapshot_.Find(id);
  if (job.state == JobState::kPending)
    Specify(live.object, inventory_, snapshot_, job);
  else
    Edit(live);
}

void Controller::HonourRequests(LiveGang& live) {
  GangJobStatus& status = live.object.status;
  if (status.checkpoint_request != live.object.checkpoint_request) {
    status.checkpoint_request = live.object.checkpoint_request;
    runner_.RequestCheckpoint(status.id);
    runner_.Write(status.id);
  }
  if (status.preempt_request != live.object.preempt_request) {
    status.preempt_request = live.object.preempt_request;
    runner_.RequestStop(status.id, "its user");
    runner_.Write(status.id);
    needs_scheduling_ = true;
  }
}

// Except for the size and a hold, changes apply when the job starts again.
void Controller::Edit(LiveGang& live) {
  live.edited = true;
  Job& job = *snapshot_.Find(live.object.status.id);
  ApplyHold(live.object, job);
  const spec::JobSpec& spec = live.object.spec;
  if (!live.object.invalid.empty()) return;
  switch (WhenSizeApplies(spec, static_cast<int>(live.workers.size()),
                          job.state == JobState::kRunning, job.checkpoints)) {
    case SizeApplies::kAtOnce:
      job.min_workers = spec.min_workers();
      job.max_workers = spec.max_workers();
      break;
    case SizeApplies::kAfterAStop:
      runner_.RequestStop(job.id, "its user, who wants another size");
      break;
    case SizeApplies::kNextTime:
      break;
  }
}

// Reads again what the server has, and forgets what was decided about the job.
void Controller::Reload() {
  for (const JobId id : runner_.TakeToReload()) {
    const auto at = runner_.live().find(id);
    if (at == runner_.live().end()) continue;
    const GangJob old = at->second.object;
    try {
      auto object = std::make_shared<const Json>(api_.Get(GangJobs(), old.ns, old.name));
      GangJob job;
      try {
        job = GangJobFrom(object);
      } catch (const Error& error) {
        LogError("{}", error.what());
        unreadable_.insert(old.uid);
        runner_.Forget(id);
        continue;
      }
      CheckWriter(job);
      if (job.uid != old.uid) {
        // By now the name belongs to another job.
        runner_.ObjectDeleted(id);
        continue;
      }
      job.status.moved =
          job.spec.queue == old.spec.queue ? std::max(job.status.moved, old.status.moved) : Now();
      // Pods that the watch may not have shown yet.
      const Json pods =
          api_.List(Pods(), old.ns, {.labels = fmt::format("{}={}", kJobNameLabel, old.name)});
      for (const Json& pod : pods.at("items")) pods_.PutAnswer(PodFrom(pod));
      for (const auto* workers : {&at->second.workers, &at->second.last_workers})
        for (const Worker& worker : *workers)
          if (worker.pod && worker.gone) pods_.PutBack(*worker.pod);
      runner_.Forget(id);
      if (HasEnded(job.status.state)) {
        ended_.Put(job);
        continue;
      }
      Admit(std::move(job));
    } catch (const ApiError& error) {
      if (error.is_not_found()) {
        runner_.ObjectDeleted(id);
        continue;
      }
      LogWarning("{}", error.what());
      runner_.ReloadLater(id);
    }
  }
}

}  // namespace renzan::cluster::kubernetes
