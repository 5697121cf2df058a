#include "renzan/cluster/core/order/service_levels.h"

#include <algorithm>
#include <cmath>

#include "renzan/cluster/core/order/gittins.h"
#include "renzan/cluster/core/predict/run_times.h"

namespace renzan::cluster {
namespace {

TimeMs CostOf(const Job& job) { return job.checkpoint_cost_ms + job.restart_cost_ms; }

// The run time from which on one more preemption is within the job's share.
TimeMs EarnedAt(const Job& job, const ServiceLevelOptions& options) {
  return static_cast<TimeMs>(std::ceil(static_cast<double>((job.preemptions + 1) * CostOf(job)) /
                                       options.max_overhead_share));
}

// For how long the job has run, at least: earlier runs are taken to have had all of its workers.
TimeMs RanAtLeast(const Job& job, TimeMs now, TimeMs started) {
  return job.attained_worker_ms / job.max_workers + now - started;
}

}  // namespace

TimeMs ServiceOf(const Job& job, TimeMs now) {
  return AttainedWorkerMs(job, now) / job.min_workers;
}

TimeMs ProgressOf(const Job& job, TimeMs now) {
  return AttainedWorkerMs(job, now) / job.max_workers;
}

TimeMs RankedService(const Job& job, TimeMs service) {
  // Run times have long tails: most of the expected work is in the longer ones of similar jobs. Any
  // high quantile would do.
  constexpr size_t kUpperQuartile = 3;
  static_assert(kQuantiles[kUpperQuartile] == 0.75F);
  const bool can_be_corrected = SavesWhenStopped(job) && job.preemptible;
  return can_be_corrected ? service : std::max(service, job.run_time[kUpperQuartile]);
}

ServiceLevels::ServiceLevels(const Snapshot& snapshot, const ServiceLevelOptions& options)
    : now_(snapshot.now), options_(&options), first_(snapshot.jobs.data()) {
  levels_.reserve(snapshot.jobs.size());
  may_be_preempted_.reserve(snapshot.jobs.size());
  for (const Job& job : snapshot.jobs) {
    levels_.push_back(LevelAt(job, AttainedWorkerMs(job, now_)));
    may_be_preempted_.push_back(job.state == JobState::kRunning && SavesWhenStopped(job) &&
                                now_ >= MayBePreemptedFrom(job, job.started) &&
                                RanAtLeast(job, now_, job.started) >= EarnedAt(job, options));
  }
}

int ServiceLevels::LevelAt(const Job& job, int64_t worker_ms) const {
  const std::vector<TimeMs>& thresholds = options_->thresholds_ms;
  TimeMs ranked = RankedService(job, worker_ms / job.min_workers);
  if (options_->gittins)
    ranked = std::max(ranked, GittinsService(job.run_time, worker_ms / job.max_workers));
  const auto above = std::find_if(thresholds.begin(), thresholds.end(),
                                  [&](TimeMs threshold) { return ranked < threshold; });
  return static_cast<int>(above - thresholds.begin());
}

TimeMs ServiceLevels::MayBePreemptedFrom(const Job& job, TimeMs started) const {
  return started + static_cast<TimeMs>(
                       std::ceil(options_->min_run_per_cost * static_cast<double>(CostOf(job))));
}

TimeMs ServiceLevels::WhenItHas(int64_t worker_ms, const Job& job, int workers) const {
  return now_ + (worker_ms - AttainedWorkerMs(job, now_) + workers - 1) / workers;
}

TimeMs ServiceLevels::MayBePreemptedAt(const Job& job, TimeMs started) const {
  return std::max(MayBePreemptedFrom(job, started),
                  now_ + EarnedAt(job, *options_) - RanAtLeast(job, now_, started));
}

bool ServiceLevels::MayGrow(const Job& job, int workers, int more) const {
  if (job.run_time.back() == 0) return true;
  const double left = static_cast<double>(LikelyRemaining(job.run_time, ProgressOf(job, now_))) *
                      job.max_workers / workers;
  return static_cast<double>(CostOf(job)) <=
         options_->max_overhead_share * left * more / (workers + more);
}

TimeMs ServiceLevels::NextChange(const Job& job, int workers, TimeMs started) const {
  TimeMs next = kNever;
  const int level = Of(job);
  if (level < top()) {
    next = WhenItHas(options_->thresholds_ms[level] * job.min_workers, job, workers);
    for (const TimeMs progress : job.run_time)
      if (const int64_t worker_ms = progress * job.max_workers;
          options_->gittins && worker_ms > AttainedWorkerMs(job, now_) &&
          LevelAt(job, worker_ms) > level) {
        next = std::min(next, WhenItHas(worker_ms, job, workers));
        break;
      }
  }
  if (const TimeMs preemptible = MayBePreemptedAt(job, started);
      level > 0 && SavesWhenStopped(job) && preemptible > now_)
    next = std::min(next, preemptible);
  if (const TimeMs shrinks = MayBePreemptedFrom(job, started);
      workers > job.min_workers && SavesWhenStopped(job) && shrinks > now_)
    next = std::min(next, shrinks);
  return std::max(next, now_ + 1);
}

}  // namespace renzan::cluster
