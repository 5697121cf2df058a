#include "renzan/cluster/core/order/quota.h"

#include <algorithm>

#include "renzan/cluster/core/order/queue_tree.h"

namespace renzan::cluster {

std::vector<int> GuaranteedKinds(const Snapshot& snapshot) {
  std::vector<int> kinds;
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (std::any_of(snapshot.queues.begin(), snapshot.queues.end(),
                    [&](const Queue& queue) { return queue.guaranteed[kind] > 0; }))
      kinds.push_back(kind);
  return kinds;
}

bool IsFixed(const Job& job) { return !job.preemptible && !job.quota_exempt; }

Quota::Quota(const ClusterView& view)
    : snapshot_(&view.snapshot()),
      total_(view.total()),
      guaranteed_kinds_(GuaranteedKinds(*snapshot_)),
      used_(snapshot_->queues.size()),
      fixed_(used_.size()),
      gpus_(snapshot_->users.size()) {
  const Snapshot& snapshot = *snapshot_;
  for (const User& user : snapshot.users) caps_.push_back(user.CapAt(snapshot.now));
  for (const int holder : view.holders()) {
    const Job& job = snapshot.jobs[holder];
    if (job.state == JobState::kRunning) Add(job, NumWorkers(job.placement));
    if (job.state == JobState::kResizing) Add(job, NumWorkers(job.target));
  }
}

void Quota::Add(const Job& job, int workers) {
  if (job.quota_exempt) return;
  const Resources amount = snapshot_->worker_requests[job.request].per_worker * workers;
  for (const int queue : LineageOf(*snapshot_, job.queue)) used_[queue] += amount;
  if (IsFixed(job)) fixed_[job.queue] += amount;
  ++version_;
  gpus_[job.user] += amount.gpu();
}

void Quota::Remove(const Job& job, int workers) { Add(job, -workers); }

std::optional<WaitReason> Quota::Forbids(const Job& job, int workers) const {
  if (job.quota_exempt) return std::nullopt;
  const Resources more = snapshot_->worker_requests[job.request].per_worker * workers;
  const Resources& limit = snapshot_->queues[job.queue].limit;
  if (IsFixed(job))
    for (const int kind : guaranteed_kinds_)
      if (more[kind] > 0 &&
          fixed_[job.queue][kind] + more[kind] > snapshot_->queues[job.queue].guaranteed[kind])
        return WaitReason::kGuaranteedQuota;
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (more[kind] > 0 && limit[kind] != kUnlimited &&
        used_[job.queue][kind] + more[kind] > limit[kind])
      return WaitReason::kQueueLimit;
  if (more.gpu() > 0 && caps_[job.user] != kUnlimited &&
      gpus_[job.user] + more.gpu() > caps_[job.user])
    return WaitReason::kUserCap;
  return std::nullopt;
}

int Quota::MostAllowed(const Job& job, int wanted) const {
  // Few jobs are elastic and few of them hit a limit: bisection would be no faster.
  while (wanted > 0 && Forbids(job, wanted)) --wanted;
  return wanted;
}

bool Quota::Exceeds(int queue, const Resources& more) const {
  const Resources& guaranteed = snapshot_->queues[queue].guaranteed;
  return std::any_of(guaranteed_kinds_.begin(), guaranteed_kinds_.end(),
                     [&](int kind) { return used_[queue][kind] + more[kind] > guaranteed[kind]; });
}

bool Quota::WithinGuarantee(int queue, const Job& job, int workers) const {
  return !Exceeds(queue, snapshot_->worker_requests[job.request].per_worker * workers);
}

bool Quota::HasGuarantee(int queue, const Job& job, int workers_less) const {
  const Resources less = snapshot_->worker_requests[job.request].per_worker * workers_less;
  const Resources& guaranteed = snapshot_->queues[queue].guaranteed;
  return std::all_of(guaranteed_kinds_.begin(), guaranteed_kinds_.end(), [&](int kind) {
    return less[kind] == 0 || used_[queue][kind] - less[kind] >= guaranteed[kind];
  });
}

double Quota::Share(int queue) const {
  const Resources& guaranteed = snapshot_->queues[queue].guaranteed;
  double share = 0;
  const auto consider = [&](int kind) {
    const double used = static_cast<double>(used_[queue][kind]);
    if (guaranteed[kind] > 0)
      share = std::max(share, used / static_cast<double>(guaranteed[kind]));
    else if (used > 0 && total_[kind] > 0)
      // Queues without a guarantee come after queues that use less than theirs.
      share = std::max(share, guarantees() + used / static_cast<double>(total_[kind]));
  };
  if (guarantees())
    for (const int kind : guaranteed_kinds_) consider(kind);
  else
    for (int kind = 0; kind < kMaxResources; ++kind) consider(kind);
  return share;
}

}  // namespace renzan::cluster
