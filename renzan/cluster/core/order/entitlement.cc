#include "renzan/cluster/core/order/entitlement.h"

#include <algorithm>
#include <tuple>

#include "renzan/cluster/core/order/quota.h"

namespace renzan::cluster {
namespace {

// Whether `amount` fits into `left`, in these kinds.
bool Fits(const Resources& amount, const Resources& left, const std::vector<int>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](int kind) { return amount[kind] <= left[kind]; });
}

}  // namespace

Entitlement::Entitlement(const Snapshot& snapshot, const ServiceLevels& levels,
                         const std::function<bool(const Job&)>& may_start)
    : levels_(&levels), first_(snapshot.jobs.data()), within_quota_(snapshot.jobs.size()) {
  const std::vector<int> kinds = GuaranteedKinds(snapshot);
  if (kinds.empty()) return;
  // Movable, -priority, loses nothing, level, pending, position.
  using Candidate = std::tuple<bool, int, bool, int, bool, int>;
  std::vector<std::vector<Candidate>> queues(snapshot.queues.size());
  for (size_t at = 0; at < snapshot.jobs.size(); ++at) {
    const Job& job = snapshot.jobs[at];
    if (job.state == JobState::kStopping) continue;
    const bool pending = job.state == JobState::kPending;
    queues[job.queue].emplace_back(pending || !IsFixed(job), -job.priority,
                                   pending || SavesWhenStopped(job), levels.Of(job), pending,
                                   static_cast<int>(at));
  }
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    std::sort(queues[queue].begin(), queues[queue].end());
    Resources left = snapshot.queues[queue].guaranteed;
    for (const auto& [movable, priority, loses_nothing, level, pending, at] : queues[queue]) {
      const Job& job = snapshot.jobs[at];
      const int workers =
          pending ? job.min_workers
                  : NumWorkers(job.state == JobState::kResizing ? job.target : job.placement);
      const Resources amount = snapshot.worker_requests[job.request].per_worker * workers;
      if (!Fits(amount, left, kinds) || (pending && !may_start(job))) continue;
      within_quota_[at] = true;
      left -= amount;
    }
  }
}

}  // namespace renzan::cluster
