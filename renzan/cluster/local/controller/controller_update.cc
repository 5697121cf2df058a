// Controller: what its user or the operator changes of a job after its submission.

#include <algorithm>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/spec/retry_policy.h"

namespace renzan::cluster::local {
namespace {

const Queue* QueueNamed(const Snapshot& snapshot, const std::string& name) {
  const auto at = std::find_if(snapshot.queues.begin(), snapshot.queues.end(),
                               [&](const Queue& queue) { return queue.name == name; });
  return at == snapshot.queues.end() ? nullptr : &*at;
}

}  // namespace

// As at a submission. Who asks for nothing that would need a right needs none: what was accepted
// keeps its place, even if the rights of its queue have changed since.
void Controller::RequireMayChangeTo(const spec::JobSpec& after, const LiveRecord& live,
                                    const Caller& caller) const {
  const bool moves = after.queue != live.spec.queue;
  if (!moves && after.priority <= live.spec.priority) return;
  const Queue* queue = QueueNamed(state_.snapshot, after.queue);
  if (queue == nullptr) return;  // MakeJob() says so
  if (const std::string why =
          spec::WhyQueueRefuses(*queue, state_.snapshot.queues, after, access_.SubmitterOf(caller));
      !why.empty())
    Fail(ErrorCode::kNoPermission, "job {}: {}", live.record.id, why);
}

// The job in another queue. What MakeJob() has added for a job that cannot run there is dropped.
Job Controller::MovedJob(const spec::JobSpec& after, const LiveRecord& live) {
  const JobRecord& record = live.record;
  if (record.state != RecordState::kPending)
    Fail(ErrorCode::kUsage,
         "job {0} is {1}: its queue can be changed only while it waits (`renzan job hold {0}` and "
         "`renzan job preempt {0}` make it wait)",
         record.id, NameOf(record.state));
  const size_t requests = state_.snapshot.worker_requests.size();
  try {
    const Job job = spec::MakeJob(state_.snapshot, after, record.user, record.id, record.submitted);
    if (const std::string why = options_.why_infeasible(state_.snapshot, job); !why.empty())
      Fail(ErrorCode::kConfig, "job {} can never run in queue {}: {}", record.id, after.queue, why);
    return job;
  } catch (...) {
    state_.snapshot.worker_requests.resize(requests);
    throw;
  }
}

JobChanged Controller::Update(JobId id, const spec::JobChange& change, const Caller& caller) {
  LiveRecord& live = Live(id, caller);
  JobRecord record = live.record;
  const std::optional<JobTexts> stored = store_.TextsOf(id);
  if (!stored || !record.damaged.empty())
    Fail(ErrorCode::kData, "job {} cannot be changed: {}: cancel it and submit it again", id,
         record.damaged.empty() ? "its specification in state.db is damaged" : record.damaged);
  const spec::JobSpec after = spec::WithChange(stored->spec, fmt::format("job {}", id), change);
  const std::string what = spec::DifferenceText(live.spec, after);
  if (what.empty()) return {.state = record.state, .what = ""};
  RequireMayChangeTo(after, live, caller);
  const bool moves = after.queue != live.spec.queue;
  const bool new_limit = after.timeout_ms() != live.spec.timeout_ms();
  const std::optional<Job> moved = moves ? std::optional(MovedJob(after, live)) : std::nullopt;

  record.priority = after.priority;
  record.queue = after.queue;
  record.spec = spec::PrintJobSpec(after);
  record.manifest = stored->manifest;
  log_.Commit(record, std::nullopt, kUpdatedEvent, fmt::format("by {}: {}", caller.name, what),
              Now());
  live.text_bytes +=
      static_cast<int64_t>(record.spec.size()) - static_cast<int64_t>(stored->spec.size());
  record.spec.clear();  // these texts are in the store
  record.manifest.clear();
  live.record = record;
  live.spec = after;
  live.policy = spec::RetryPolicyOf(after);
  Job& job = *state_.snapshot.Find(id);
  job.priority = after.priority;
  if (moved) {
    job.queue = moved->queue;
    job.request = moved->request;
    live.unusable = moved->held;
  }
  if (new_limit && live.record.attempt) runner_.SendTimeLimit(live);
  return {.state = record.state, .what = what};
}

}  // namespace renzan::cluster::local
