#include "renzan/cluster/core/explain/submissions.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/predict/run_times.h"

namespace renzan::cluster {
namespace {

constexpr double kMostWeight = 10;

double WeightOf(const Job& job, TimeMs now) {
  const RunTimeQuantiles& learned = LatestRunTime(job);
  if (learned.back() == 0) return 1;
  return std::min(kMostWeight, 1 / (1 - ShareEnded(learned, ProgressOf(job, now))));
}

Job AsSubmitted(const Job& job) {
  return {.request = job.request,
          .queue = job.queue,
          .user = job.user,
          .priority = job.priority,
          .min_workers = job.min_workers,
          .max_workers = job.max_workers,
          .checkpoints = job.checkpoints,
          .preemptible = job.preemptible,
          .grace_ms = job.grace_ms,
          .max_checkpoint_interval_ms = job.max_checkpoint_interval_ms,
          .restart_cost_ms = job.restart_cost_ms,
          .checkpoint_cost_ms = job.checkpoint_cost_ms,
          .run_time = LatestRunTime(job)};
}

}  // namespace

Submissions::Submissions(const Snapshot& snapshot, TimeMs lately) : lately_(lately) {
  double weight = 0;
  for (const Job& job : snapshot.jobs) {
    if (job.submitted <= snapshot.now - lately || !job.held.empty()) continue;
    weight += WeightOf(job, snapshot.now);
    jobs_.push_back(AsSubmitted(job));
    weights_.push_back(weight);
  }
}

double Submissions::per_hour() const {
  return weights_.empty() ? 0 : weights_.back() * kHour / static_cast<double>(lately_);
}

const Job& Submissions::Draw(double share) const {
  CHECK(!jobs_.empty());
  const auto at = std::upper_bound(weights_.begin(), weights_.end() - 1, share * weights_.back());
  return jobs_[static_cast<size_t>(at - weights_.begin())];
}

}  // namespace renzan::cluster
