#include "renzan/cluster/core/order/entitlement.h"

#include <algorithm>
#include <optional>

#include "renzan/cluster/core/order/room_by_right.h"

namespace renzan::cluster {
namespace {

// Whether `amount` fits into `left`, in these kinds.
bool Fits(const Resources& amount, const Resources& left, const std::vector<int>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](int kind) { return amount[kind] <= left[kind]; });
}

// Whether others can take the workers above its minimum, once it runs.
bool CanShrink(const Job& job) {
  return SavesWhenStopped(job) && job.preemptible && !job.grand_challenge;
}

}  // namespace

Entitlement::Entitlement(const ClusterView& view, const Quota& quota, const Occupants& occupants,
                         Ranks& ranks, const std::function<bool(const Job&)>& may_start)
    : ranks_(ranks), snapshot_(view.snapshot()), kinds_(GuaranteedKinds(view.snapshot())) {
  const Snapshot& snapshot = view.snapshot();
  if (kinds_.empty()) return;
  std::vector<Places> queues(snapshot.queues.size());
  for (size_t at = 0; at < snapshot.jobs.size(); ++at) {
    const Job& job = snapshot.jobs[at];
    if (job.state == JobState::kStopping) continue;
    const bool pending = job.state == JobState::kPending;
    const auto& [beyond_quota, right, use, service] = ranks.Of(job);
    queues[job.queue].emplace_back(pending || !IsFixed(job), right,
                                   pending || SavesWhenStopped(job), use, service, pending, at);
  }
  for (Places& places : queues) std::sort(places.begin(), places.end());
  std::optional<RoomByRight> room;
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    Resources& left = left_.emplace_back(snapshot.queues[queue].guaranteed);
    std::vector<int> claims;  // pending jobs within quota
    const auto drop_idle_claims = [&] {
      if (!claims.empty() && !room)
        room.emplace(view, quota, occupants, ranks, RunningWithinQuota(queues));
      for (const int at : claims)
        if (const Job& job = snapshot.jobs[at]; !room->Take(job)) left += UseOf(job);
      claims.clear();
    };
    for (const auto& place : queues[queue]) {
      const int at = std::get<int>(place);
      const Job& job = snapshot.jobs[at];
      const bool pending = job.state == JobState::kPending;
      const Resources amount = UseOf(job);
      if (!Fits(amount, snapshot.queues[queue].guaranteed, kinds_) || (pending && !may_start(job)))
        continue;
      if (!Fits(amount, left, kinds_)) drop_idle_claims();
      if (!Fits(amount, left, kinds_)) continue;
      ranks.SetWithinQuota(job);
      left -= amount;
      if (pending) claims.push_back(at);
    }
  }
}

// What the job uses of its queue's guaranteed quota.
Resources Entitlement::UseOf(const Job& job) const {
  const int workers =
      job.state == JobState::kPending || CanShrink(job)
          ? job.min_workers
          : NumWorkers(job.state == JobState::kResizing ? job.target : job.placement);
  return snapshot_.worker_requests[job.request].per_worker * workers;
}

// The running jobs that would be within quota if none were pending, by position.
std::vector<bool> Entitlement::RunningWithinQuota(const std::vector<Places>& queues) const {
  std::vector<bool> within(snapshot_.jobs.size());
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    Resources left = snapshot_.queues[queue].guaranteed;
    for (const auto& place : queues[queue]) {
      const int at = std::get<int>(place);
      const Job& job = snapshot_.jobs[at];
      if (job.state == JobState::kPending || !Fits(UseOf(job), left, kinds_)) continue;
      within[at] = true;
      left -= UseOf(job);
    }
  }
  return within;
}

bool Entitlement::MayLoseQuotaByGrowing(const Job& job) const {
  return ranks_.WithinQuota(job) && !CanShrink(job) && !job.grand_challenge;
}

int Entitlement::MoreWorkers(const Job& job, int workers) const {
  const int most = job.max_workers - workers;
  if (!MayLoseQuotaByGrowing(job)) return most;
  const Resources& each = snapshot_.worker_requests[job.request].per_worker;
  int more = 0;
  while (more < most && Fits(each * (more + 1), left_[job.queue], kinds_)) ++more;
  return more;
}

void Entitlement::Take(const Job& job, int more) {
  if (MayLoseQuotaByGrowing(job))
    left_[job.queue] -= snapshot_.worker_requests[job.request].per_worker * more;
}

}  // namespace renzan::cluster
