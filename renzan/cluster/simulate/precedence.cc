#include "renzan/cluster/simulate/precedence.h"

#include <algorithm>

#include "renzan/cluster/core/order/entitlement.h"
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
  ExchangeTurns();
  const auto serve = [&](JobId id) {
    if (IsOverdue(*snapshot.Find(id))) overdue_served_.insert(id);
  };
  for (const Start& start : decisions.starts) serve(start.job);
  for (const Wait& wait : decisions.waits)
    if (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting)
      serve(wait.job);
}

void Precedence::ExchangeTurns() {
  for (size_t queue = 0; queue < snapshot_.queues.size(); ++queue) {
    if (!snapshot_.queues[queue].fair_share) continue;
    std::vector<const Job*> jobs;
    for (const Job& job : snapshot_.jobs)
      if (job.queue == static_cast<int>(queue) && job.state == JobState::kPending &&
          !job.quota_exempt && !room_is_made_.contains(job.id))
        jobs.push_back(&job);
    std::ranges::stable_sort(jobs,
                             [&](const Job* a, const Job* b) { return ranks_.Outranks(*a, *b); });
    const std::vector<Turn> turns = ExchangedTurns(jobs, ranks_, snapshot_);
    for (size_t at = 0; at < jobs.size(); ++at) turns_.emplace(jobs[at]->id, turns[at]);
  }
}

Turn Precedence::TurnOf(const Job& job) const {
  const auto exchanged = turns_.find(job.id);
  return exchanged != turns_.end()
             ? exchanged->second
             : Turn{ranks_.Of(job).AmongQueues(), static_cast<int>(&job - snapshot_.jobs.data())};
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
  if (other.quota_exempt != job.quota_exempt)
    return if_so(other.quota_exempt, WhyAhead(ranks_.Of(other), ranks_.Of(job)));
  if (const bool made = room_is_made_.contains(other.id); made != room_is_made_.contains(job.id))
    return if_so(made, "with room made before");
  const Rank &its = ranks_.Of(other), &own = ranks_.Of(job);
  if (other.quota_exempt || room_is_made_.contains(other.id))
    return its.right != own.right ? if_so(its.right < own.right, "of higher priority")
                                  : if_so(other.id < job.id, "submitted earlier");
  if (its.Class() != own.Class()) return if_so(its < own, WhyAhead(its, own));
  // Overdue jobs go first until one of them is served.
  const bool overdue = IsOverdue(other);
  if (overdue && (!IsOverdue(job) || other.waiting_since < job.waiting_since)) return "overdue";
  if (IsOverdue(job) && NoOverdueServedBut(other)) return std::nullopt;
  if (other.queue == job.queue)
    return its != own ? if_so(its < own, WhyAhead(its, own))
                      : if_so(other.id < job.id, "submitted earlier");
  const Turn theirs = TurnOf(other), mine = TurnOf(job);
  if (theirs.rank != mine.rank) return if_so(theirs < mine, WhyAhead(theirs.rank, mine.rank));
  if (quota_.guarantees() && quota_.Share(other.queue) < quota_.Share(job.queue))
    return "of a queue that used less of its quota";
  return if_so(theirs.submitted < mine.submitted, "submitted earlier");
}

}  // namespace renzan::cluster::simulate
