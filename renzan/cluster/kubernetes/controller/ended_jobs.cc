#include "renzan/cluster/kubernetes/controller/ended_jobs.h"

#include <algorithm>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {
namespace {

// How many requests at a time, so that a shortened retention period does not hold up the scheduler.
constexpr size_t kDeletedAtATime = 64;

JobTraits TraitsOf(const GangJob& job) {
  const int64_t gpus = GpusOf(job);
  return {job.spec.queue, job.ns, job.name, gpus > 0 ? gpus : job.spec.max_workers()};
}

}  // namespace

void EndedJobs::Put(const GangJob& job) {
  const TimeMs ended = job.status.ended.value_or(job.created);
  if (!ended_at_.emplace(job.uid, ended).second) return;
  by_time_[{ended, job.uid}] = {job.ns, job.name, job.uid};
  if (!job.invalid.empty()) return;
  // How long it ran, as if with all of its workers. A job that never ran teaches nothing.
  const TimeMs ran = job.status.attained_worker_ms / job.spec.max_workers();
  if (ran > 0) lessons_[{ended, job.uid}] = {TraitsOf(job), ran};
}

void EndedJobs::Remove(const std::string& uid) {
  const auto at = ended_at_.find(uid);
  if (at == ended_at_.end()) return;
  by_time_.erase({at->second, uid});
  ended_at_.erase(at);
}

RunTimeQuantiles EndedJobs::Predict(const GangJob& job) {
  if (!job.invalid.empty()) return {};
  for (const auto& [when, lesson] : std::exchange(lessons_, {}))
    run_times_.Add(lesson.traits, lesson.ran);
  return run_times_.Predict(TraitsOf(job));
}

TimeMs EndedJobs::DeleteOld(TimeMs keep_ms, TimeMs now, Requests& requests) {
  if (keep_ms <= 0) return kNever;
  struct Deletion : Task {
    Ended* job = nullptr;
  };
  std::vector<Deletion> deletions;
  TimeMs next = kNever;
  for (auto& [key, job] : by_time_) {
    if (key.first + keep_ms > now) {
      next = key.first + keep_ms;
      break;
    }
    if (deletions.size() == kDeletedAtATime) {
      next = now;
      break;
    }
    if (!job.asked) deletions.push_back({{}, &job});
  }
  RunAll(requests, deletions, [](Api& api, const Deletion& deletion) {
    const Ended& job = *deletion.job;
    api.Delete(GangJobs(), job.ns, job.name, job.uid, std::nullopt);
  });
  for (Deletion& deletion : deletions) {
    // A conflict means that the name now belongs to another job: this one is gone.
    deletion.job->asked = !deletion.error || deletion.error->is_conflict();
    if (deletion.job->asked) continue;
    LogWarning("{}", deletion.error->what());
    next = now + kSecond;
  }
  return next;
}

}  // namespace renzan::cluster::kubernetes
