#include "renzan/cluster/core/place/occupants.h"

#include <algorithm>

namespace renzan::cluster {

double CostOfStopping(const Job& job, const Snapshot& snapshot) {
  const Resources& each = snapshot.worker_requests[job.request].per_worker;
  const double weight = each.gpu() > 0 ? static_cast<double>(each.gpu())
                                       : 0.01 * static_cast<double>(each[kCpu]) / 1000;
  const TimeMs saved =
      job.checkpoints ? std::max(job.started, job.last_checkpoint.value_or(0)) : job.started;
  const TimeMs repeated = SavesWhenStopped(job) ? job.checkpoint_cost_ms : snapshot.now - saved;
  return weight * NumWorkers(job.placement) *
         static_cast<double>(std::max<TimeMs>(repeated, 0) + job.restart_cost_ms) / 1000;
}

Occupants::Occupants(const ClusterView& view)
    : first_(view.num_nodes() + 1), cost_(view.snapshot().jobs.size()), leaving_(cost_.size()) {
  const Snapshot& snapshot = view.snapshot();
  for (const int job : view.holders()) {
    if (snapshot.jobs[job].state != JobState::kRunning) continue;
    jobs_.push_back(job);
    cost_[job] = CostOfStopping(snapshot.jobs[job], snapshot);
    for (const Placed& placed : snapshot.jobs[job].placement) ++first_[placed.node + 1];
  }
  for (size_t node = 1; node < first_.size(); ++node) first_[node] += first_[node - 1];
  tenants_.resize(first_.back());
  std::vector<int> next(first_.begin(), first_.end() - 1);
  for (const int job : jobs_)
    for (const Placed& placed : snapshot.jobs[job].placement)
      tenants_[next[placed.node]++] = {job, placed.workers};
}

}  // namespace renzan::cluster
