#include "renzan/cluster/core/order/entitlement.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "renzan/cluster/core/order/quota.h"

namespace renzan::cluster {
namespace {

// Whether `amount` fits into `left`, in these kinds.
bool Fits(const Resources& amount, const Resources& left, const std::vector<int>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](int kind) { return amount[kind] <= left[kind]; });
}

// The job's place within its queue (lowest first) as one number, because sorting all jobs of a
// large cluster takes time: fixed jobs, higher priority, those that would lose work, less service,
// running jobs.
uint64_t PlaceOf(const Job& job, int level) {
  const bool pending = job.state == JobState::kPending;
  const bool movable = pending || !IsFixed(job), loses_nothing = pending || SavesWhenStopped(job);
  const auto below_highest =
      static_cast<uint64_t>(int64_t{std::numeric_limits<int>::max()} - job.priority);
  return uint64_t{movable} << 63 | below_highest << 24 | uint64_t{loses_nothing} << 23 |
         static_cast<uint64_t>(level) << 1 | uint64_t{pending};
}

// Whether others can take the workers above its minimum, once it runs.
bool CanShrink(const Job& job) {
  return SavesWhenStopped(job) && job.preemptible && !job.grand_challenge;
}

}  // namespace

Entitlement::Entitlement(const Snapshot& snapshot, const ServiceLevels& levels,
                         const std::function<bool(const Job&)>& may_start)
    : levels_(&levels),
      first_(snapshot.jobs.data()),
      within_quota_(snapshot.jobs.size()),
      snapshot_(&snapshot),
      kinds_(GuaranteedKinds(snapshot)) {
  if (kinds_.empty()) return;
  using Candidate = std::pair<uint64_t, int>;  // place, position
  std::vector<std::vector<Candidate>> queues(snapshot.queues.size());
  for (size_t at = 0; at < snapshot.jobs.size(); ++at) {
    const Job& job = snapshot.jobs[at];
    if (job.state == JobState::kStopping) continue;
    queues[job.queue].emplace_back(PlaceOf(job, levels.Of(job)), static_cast<int>(at));
  }
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    std::sort(queues[queue].begin(), queues[queue].end());
    Resources& left = left_.emplace_back(snapshot.queues[queue].guaranteed);
    for (const auto& [place, at] : queues[queue]) {
      const Job& job = snapshot.jobs[at];
      const bool pending = job.state == JobState::kPending;
      const int workers =
          pending || CanShrink(job)
              ? job.min_workers
              : NumWorkers(job.state == JobState::kResizing ? job.target : job.placement);
      const Resources amount = snapshot.worker_requests[job.request].per_worker * workers;
      if (!Fits(amount, left, kinds_) || (pending && !may_start(job))) continue;
      within_quota_[at] = true;
      left -= amount;
    }
  }
}

bool Entitlement::MayLoseQuotaByGrowing(const Job& job) const {
  return WithinQuota(job) && !CanShrink(job) && !job.grand_challenge;
}

int Entitlement::MoreWorkers(const Job& job, int workers) const {
  const int most = job.max_workers - workers;
  if (!MayLoseQuotaByGrowing(job)) return most;
  const Resources& each = snapshot_->worker_requests[job.request].per_worker;
  int more = 0;
  while (more < most && Fits(each * (more + 1), left_[job.queue], kinds_)) ++more;
  return more;
}

void Entitlement::Take(const Job& job, int more) {
  if (MayLoseQuotaByGrowing(job))
    left_[job.queue] -= snapshot_->worker_requests[job.request].per_worker * more;
}

}  // namespace renzan::cluster
