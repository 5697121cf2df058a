#include "renzan/cluster/simulate/job_story.h"

#include <algorithm>

#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/order/service_levels.h"

namespace renzan::cluster::simulate {
namespace {

std::string Duration(TimeMs time) { return FormatDuration(time / kSecond); }

int64_t GpusOf(const Snapshot& snapshot, const Job& job, int workers) {
  return snapshot.worker_requests[job.request].per_worker.gpu() * workers;
}

std::string Gpus(int64_t count) { return fmt::format("{} GPU{}", count, count == 1 ? "" : "s"); }

std::string NodesOf(const Snapshot& snapshot, const Placement& placement) {
  std::vector<std::string> names;
  for (const Placed& placed : placement) names.push_back(snapshot.nodes[placed.node].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string For(const Snapshot& snapshot, JobId id) {
  const Job* job = snapshot.Find(id);
  if (job == nullptr) return "";
  return fmt::format(" for job {} ({})", id, Gpus(GpusOf(snapshot, *job, job->min_workers)));
}

// The rule by which one pending job goes before another, as in pending_queue.h.
const char* WhyFirst(const Snapshot& snapshot, const ScheduleOptions& options, const Job& other,
                     const Job& job) {
  const ServiceLevels levels(snapshot, options.levels);
  if (other.priority > job.priority) return "of higher priority";
  if (snapshot.now >= OverdueAt(other, options.overdue_after_ms)) return "overdue";
  if (levels.Of(other) < levels.Of(job)) return "with less service";
  if (levels.Of(other) == levels.Of(job) && other.id < job.id) return "submitted earlier";
  return "that fitted where it did not";
}

}  // namespace

PolicyOutput JobStory::Decide(const PolicyInput& input) {
  PolicyOutput output = policy_->Decide(input);
  Watch(input.snapshot, output.decisions);
  return output;
}

void JobStory::Watch(const Snapshot& snapshot, const Decisions& decisions) {
  const Job* job = snapshot.Find(job_);
  if (job == nullptr || job->eligible_at == kNever) return;
  if (lines_.empty())
    Tell(job->submitted,
         fmt::format("submitted: {}, queue {}, {}", Gpus(GpusOf(snapshot, *job, job->max_workers)),
                     snapshot.queues[job->queue].name,
                     SavesWhenStopped(*job) ? "saves its work" : "would lose its work if stopped"));
  if (job->state == JobState::kPending) return WatchPending(snapshot, *job, decisions);
  for (const Stop& stop : decisions.stops)
    if (stop.job == job_)
      Tell(snapshot.now,
           fmt::format("stopped{} ({})", For(snapshot, stop.on_behalf_of), NameOf(stop.reason)));
  for (const Resize& resize : decisions.resizes)
    if (resize.job == job_)
      Tell(snapshot.now, fmt::format("moved to {}{}", NodesOf(snapshot, resize.target),
                                     For(snapshot, resize.on_behalf_of)));
}

void JobStory::WatchPending(const Snapshot& snapshot, const Job& job, const Decisions& decisions) {
  for (const Start& start : decisions.starts)
    if (start.job == job_) {
      CloseWaiting(snapshot.now);
      return Tell(snapshot.now, "starts on " + NodesOf(snapshot, start.placement));
    }
  std::string reason = "no room";
  for (const Wait& wait : decisions.waits)
    if (wait.job == job_) reason = NameOf(wait.reason) + For(snapshot, wait.blocked_by);
  if (waiting_ && waiting_->reason != reason) CloseWaiting(snapshot.now);
  if (!waiting_) waiting_ = Waiting{snapshot.now, reason, {}, {}};
  for (const Start& start : decisions.starts) CountFirst(snapshot, job, start);
}

void JobStory::CountFirst(const Snapshot& snapshot, const Job& job, const Start& start) {
  const Job& other = *snapshot.Find(start.job);
  ++waiting_->went_first[WhyFirst(snapshot, options_, other, job)];
  auto& largest = waiting_->largest;
  largest.emplace_back(GpusOf(snapshot, other, NumWorkers(start.placement)), other.id);
  std::sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
  });
  if (largest.size() > 3) largest.pop_back();
}

void JobStory::CloseWaiting(TimeMs now) {
  if (!waiting_) return;
  std::string text = fmt::format("waits {}: {}", Duration(now - waiting_->begin), waiting_->reason);
  int all = 0;
  std::vector<std::string> reasons, jobs;
  for (const auto& [why, count] : waiting_->went_first) {
    all += count;
    reasons.push_back(fmt::format("{} {}", count, why));
  }
  for (const auto& [gpus, id] : waiting_->largest)
    jobs.push_back(fmt::format("{} ({})", id, Gpus(gpus)));
  if (all > 0)
    text += fmt::format("; {} started meanwhile ({}), the largest: job {}",
                        all == 1 ? "one job" : fmt::format("{} jobs", all),
                        fmt::join(reasons, ", "), fmt::join(jobs, ", "));
  if (now > waiting_->begin || all > 0) Tell(waiting_->begin, std::move(text));
  waiting_.reset();
}

std::string JobStory::Text(const SimulationResult& result) const {
  const auto record = std::find_if(result.jobs.begin(), result.jobs.end(),
                                   [&](const JobRecord& job) { return job.id == job_; });
  if (record == result.jobs.end())
    Fail(ErrorCode::kUsage,
         "the simulation has no job {}: jobs are numbered from 1 by submission, up to {}, and "
         "those that could never run here are left out",
         job_, result.jobs.empty() ? 0 : result.jobs.back().id);
  std::string text = fmt::format("job {}, from the first submission:\n", job_);
  for (const auto& [time, what] : lines_) text += fmt::format("{:>12}  {}\n", Duration(time), what);
  if (record->end)
    text += fmt::format("{:>12}  ends; it waited {} in all; stops: {}\n", Duration(*record->end),
                        Duration(record->waited_ms), record->preemptions + record->drains);
  return text;
}

}  // namespace renzan::cluster::simulate
