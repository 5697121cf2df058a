#include "renzan/cluster/simulate/precedence.h"

#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/place/occupants.h"

namespace renzan::cluster::simulate {

Precedence::Precedence(const Snapshot& snapshot, const ScheduleOptions& options)
    : snapshot_(snapshot),
      overdue_after_(options.overdue_after_ms),
      view_(snapshot),
      quota_(view_),
      levels_(snapshot, options.levels),
      entitlement_(view_, quota_, Occupants(view_), levels_, [](const Job&) { return true; }) {
  for (const Job& job : snapshot.jobs) room_is_made_.insert(job.stopping_for);
}

std::optional<const char*> Precedence::RightOf(const Job& other, const Job& job) const {
  if (other.grand_challenge) return "a grand challenge";
  if (room_is_made_.contains(other.id)) return "with room made before";
  if (entitlement_.WithinQuota(job) && !entitlement_.WithinQuota(other)) return {};
  if (entitlement_.WithinQuota(other) && !entitlement_.WithinQuota(job))
    return "within its queue's quota";
  if (other.priority < job.priority) return {};
  if (other.priority > job.priority) return "of higher priority";
  const auto is_overdue = [&](const Job& each) {
    return snapshot_.now >= OverdueAt(each, overdue_after_);
  };
  if (is_overdue(other) && (!is_overdue(job) || other.waiting_since < job.waiting_since))
    return "overdue";
  if (levels_.Of(other) > levels_.Of(job)) return {};
  if (levels_.Of(other) < levels_.Of(job)) return "with less service";
  if (quota_.guarantees() && quota_.Share(other.queue) < quota_.Share(job.queue))
    return "of a queue that used less of its quota";
  if (other.id > job.id) return {};
  return "submitted earlier";
}

}  // namespace renzan::cluster::simulate
