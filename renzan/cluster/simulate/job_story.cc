#include "renzan/cluster/simulate/job_story.h"

#include <algorithm>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/explain/forecast.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/simulate/precedence.h"

namespace renzan::cluster::simulate {
namespace {

std::string Duration(TimeMs time) { return FormatDuration(time / kSecond); }

int64_t GpusOf(const Snapshot& snapshot, const Job& job, int workers) {
  return snapshot.worker_requests[job.request].per_worker.gpu() * workers;
}

std::string Gpus(int64_t count) { return Counted(count, "GPU"); }

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

// What `renzan job explain` would estimate: "about 3m, 9 times out of 10 within 1h".
std::string Expected(const Snapshot& snapshot, JobId job, const ScheduleOptions& options) {
  CycleBudget budget(ExplainOptions().max_cycles);
  const Forecast forecast = ForecastStart(snapshot, job, options, budget);
  if (!forecast.median) return "";
  std::string text = "about " + Duration(*forecast.median - snapshot.now);
  if (forecast.p90) text += ", 9 times out of 10 within " + Duration(*forecast.p90 - snapshot.now);
  return text;
}

// Where a pending job starts now, gang by gang or worker by worker; empty if it does not.
Placement StartOf(const Job& job, const PolicyInput& input, const PolicyOutput& output) {
  for (const Start& start : output.decisions.starts)
    if (start.job == job.id) return start.placement;
  const auto held = input.held.find(job.id);
  Placement placement = held == input.held.end() ? Placement{} : held->second;
  for (const Hold& hold : output.holds)
    if (hold.job == job.id) placement = Sum(placement, {{hold.node, hold.workers}});
  return NumWorkers(placement) == job.max_workers ? placement : Placement{};
}

}  // namespace

PolicyOutput JobStory::Decide(const PolicyInput& input) {
  PolicyOutput output = policy_->Decide(input);
  Watch(input, output);
  return output;
}

void JobStory::Watch(const PolicyInput& input, const PolicyOutput& output) {
  const Snapshot& snapshot = input.snapshot;
  const Job* job = snapshot.Find(job_);
  if (job == nullptr) return CloseWaiting(snapshot.now);
  if (lines_.empty())
    Tell(job->submitted,
         fmt::format("submitted: {}, queue {}, {}", Gpus(GpusOf(snapshot, *job, job->max_workers)),
                     snapshot.queues[job->queue].name,
                     SavesWhenStopped(*job) ? "saves its work" : "would lose its work if stopped"));
  if (job->state == JobState::kPending)
    WatchPending(input, *job, output);
  else
    WatchRunning(snapshot, *job, output);
}

void JobStory::WatchPending(const PolicyInput& input, const Job& job, const PolicyOutput& output) {
  const Snapshot& snapshot = input.snapshot;
  // Only its own failure is followed by a pause.
  if (runs_ && !leaves_)
    Tell(job.waiting_since, job.eligible_at > job.waiting_since
                                ? fmt::format("fails; it may start again after {}",
                                              Duration(job.eligible_at - job.waiting_since))
                                : "a node with its workers failed");
  runs_ = leaves_ = false;
  const Placement placement = StartOf(job, input, output);
  if (!placement.empty()) {
    CloseWaiting(snapshot.now);
    runs_ = true;
    return Tell(snapshot.now, "starts on " + NodesOf(snapshot, placement));
  }
  std::string reason = "no room";
  for (const Wait& wait : output.decisions.waits)
    if (wait.job == job_) reason = NameOf(wait.reason) + For(snapshot, wait.blocked_by);
  if (waiting_ && waiting_->reason != reason) CloseWaiting(snapshot.now);
  if (!waiting_) {
    waiting_ = Waiting{snapshot.now, reason, {}, {}, {}};
    if (policy_->IsScheduler())
      waiting_->expected = Expected(input.for_estimates(), job_, options_);
  }
  if (!output.decisions.starts.empty()) WentFirst(snapshot, job, output.decisions);
}

void JobStory::WatchRunning(const Snapshot& snapshot, const Job& job, const PolicyOutput& output) {
  leaves_ = job.state != JobState::kRunning;
  for (const Stop& stop : output.decisions.stops)
    if (stop.job == job_) {
      leaves_ = true;
      Tell(snapshot.now,
           fmt::format("stopped{} ({})", For(snapshot, stop.on_behalf_of), NameOf(stop.reason)));
    }
  for (const Resize& resize : output.decisions.resizes)
    if (resize.job == job_)
      Tell(snapshot.now, fmt::format("moved to {}{}", NodesOf(snapshot, resize.target),
                                     For(snapshot, resize.on_behalf_of)));
  for (const Evict& evict : output.evicts)
    if (evict.job == job_) {
      leaves_ = true;
      Tell(snapshot.now, fmt::format("{} of its workers evicted from {}", evict.workers,
                                     snapshot.nodes[evict.node].name));
    }
}

void JobStory::WentFirst(const Snapshot& snapshot, const Job& job, const Decisions& decisions) {
  std::optional<Precedence> precedence;
  if (policy_->IsScheduler()) precedence.emplace(snapshot, decisions, options_);
  for (const Start& start : decisions.starts) {
    const Job& other = *snapshot.Find(start.job);
    std::string why;
    if (precedence) why = precedence->RightOf(other, job).value_or("that fitted where it did not");
    waiting_->went_first[why].insert(other.id);
    waiting_->gpus[other.id] = GpusOf(snapshot, other, NumWorkers(start.placement));
  }
}

void JobStory::CloseWaiting(TimeMs now) {
  if (!waiting_) return;
  const Waiting waiting = *std::exchange(waiting_, std::nullopt);
  std::string text = fmt::format("waits {}: {}", Duration(now - waiting.begin), waiting.reason);
  if (!waiting.expected.empty()) text += fmt::format(" (expected: {})", waiting.expected);
  std::vector<std::pair<int64_t, JobId>> largest;
  for (const auto& [id, gpus] : waiting.gpus) largest.emplace_back(-gpus, id);
  std::sort(largest.begin(), largest.end());
  if (largest.size() > 3) largest.resize(3);
  std::vector<std::string> reasons, jobs;
  for (const auto& [why, ids] : waiting.went_first)
    if (!why.empty()) reasons.push_back(fmt::format("{} {}", ids.size(), why));
  for (const auto& [gpus, id] : largest) jobs.push_back(fmt::format("{} ({})", id, Gpus(-gpus)));
  const size_t all = waiting.gpus.size();
  if (all > 0)
    text += fmt::format("; {} started meanwhile{}, the largest: job {}", Counted(all, "job"),
                        reasons.empty() ? "" : fmt::format(" ({})", fmt::join(reasons, ", ")),
                        fmt::join(jobs, ", "));
  if (now > waiting.begin || all > 0) Tell(waiting.begin, std::move(text));
}

std::string JobStory::Text(const SimulationResult& result) {
  const auto record = std::find_if(result.jobs.begin(), result.jobs.end(),
                                   [&](const JobRecord& job) { return job.id == job_; });
  if (record == result.jobs.end())
    Fail(ErrorCode::kUsage,
         "the simulation has no job {}: jobs are numbered from 1 by submission, up to {}, and "
         "those that could never run here are left out",
         job_, result.jobs.empty() ? 0 : result.jobs.back().id);
  CloseWaiting(result.totals.end);
  std::string text = fmt::format("job {}, from the first submission:\n", job_);
  for (const auto& [time, what] : lines_) text += fmt::format("{:>12}  {}\n", Duration(time), what);
  if (record->end)
    text +=
        fmt::format("{:>12}  {}; it waited {} in all; stops: {}\n", Duration(*record->end),
                    record->failed ? "fails for good" : "ends", Duration(record->waited_ms),
                    record->preemptions + record->drains + record->resizes + record->node_failures);
  else
    text += "never ends\n";
  return text;
}

}  // namespace renzan::cluster::simulate
