#include "renzan/cluster/simulate/precedence.h"

#include <algorithm>

#include "renzan/cluster/core/order/entitlement.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/place/occupants.h"

namespace renzan::cluster::simulate {

Precedence::Precedence(const Snapshot& snapshot, const Decisions& decisions,
                       const ScheduleOptions& options)
    : snapshot_(snapshot),
      overdue_after_(options.overdue_after_ms),
      view_(snapshot),
      quota_(view_),
      ranks_(snapshot, options.levels) {
  Entitlement(view_, quota_, Occupants(view_), ranks_, [](const Job&) { return true; });
  for (const Job& job : snapshot.jobs) room_is_made_.insert(job.stopping_for);
  const auto serve = [&](JobId id) {
    if (IsOverdue(*snapshot.Find(id))) overdue_served_.insert(id);
  };
  for (const Start& start : decisions.starts) serve(start.job);
  for (const Wait& wait : decisions.waits)
    if (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting)
      serve(wait.job);
}

bool Precedence::IsOverdue(const Job& job) const {
  return snapshot_.now >= OverdueAt(job, overdue_after_);
}

bool Precedence::NoOverdueServedBut(const Job& job) const {
  return std::ranges::all_of(overdue_served_, [&](JobId id) { return id == job.id; });
}

std::optional<const char*> Precedence::RightOf(const Job& other, const Job& job) const {
  const auto if_so = [](bool goes_first, const char* right) {
    return goes_first ? std::optional(right) : std::nullopt;
  };
  if (other.grand_challenge != job.grand_challenge)
    return if_so(other.grand_challenge, "a grand challenge");
  if (const bool made = room_is_made_.contains(other.id); made != room_is_made_.contains(job.id))
    return if_so(made, "with room made before");
  const Rank &its = ranks_.Of(other), &own = ranks_.Of(job);
  if (its.Class() != own.Class()) return if_so(its < own, WhyAhead(its, own));
  // Overdue jobs go first until one of them is served.
  const bool overdue = IsOverdue(other);
  if (overdue && (!IsOverdue(job) || other.waiting_since < job.waiting_since)) return "overdue";
  if (IsOverdue(job) && NoOverdueServedBut(other)) return std::nullopt;
  if (its != own) return if_so(its < own, WhyAhead(its, own));
  if (quota_.guarantees() && quota_.Share(other.queue) < quota_.Share(job.queue))
    return "of a queue that used less of its quota";
  return if_so(other.id < job.id, "submitted earlier");
}

}  // namespace renzan::cluster::simulate
