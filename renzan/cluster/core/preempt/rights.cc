#include "renzan/cluster/core/preempt/rights.h"

#include "renzan/cluster/core/place/placements.h"

namespace renzan::cluster {

std::optional<StopReason> Rights::ToStop(const Preemptor& preemptor, const Job& victim,
                                         const Quota& quota) const {
  const Job& job = *preemptor.job;
  if (!victim.preemptible) return std::nullopt;
  if (ranks_.IsUnbound(job)) return StopReason::kGrandChallenge;
  if (victim.backfilled && preemptor.reserved != nullptr &&
      Overlap(victim.placement, *preemptor.reserved) && !ranks_.Outranks(victim, job))
    return StopReason::kReservation;
  if (!ranks_.Outranks(job, victim)) return std::nullopt;
  if (victim.queue == job.queue) return ranks_.WhyItMayStop(job, victim);
  if (quota.guarantees() &&
      (ranks_.WithinQuotaAgainst(victim, job) || !VictimsSideBorrows(victim, job, quota)))
    return std::nullopt;
  if (IsReclaim(snapshot_, preemptor.reclaims, job, victim)) return StopReason::kReclaimed;
  return ranks_.WhyItMayStop(job, victim);
}

bool Rights::ToShrink(const Preemptor& preemptor, const Job& victim, const Quota& quota) const {
  if (!SavesWhenStopped(victim) || NumWorkers(victim.placement) <= victim.min_workers) return false;
  if (ToStop(preemptor, victim, quota)) return true;
  const Job& job = *preemptor.job;
  if (!victim.preemptible || !ranks_.IsNotBelow(job, victim)) return false;
  if (ranks_.Of(job).right == ranks_.Of(victim).right &&
      !IsReclaim(snapshot_, preemptor.reclaims, job, victim) &&
      !ranks_.levels().MayShrinkForEquals(victim))
    return false;
  return victim.queue == job.queue || !quota.guarantees() || VictimsSideBorrows(victim, job, quota);
}

bool Rights::VictimsSideBorrows(const Job& victim, const Job& job, const Quota& quota) const {
  return quota.Borrows(SideOf(snapshot_, victim.queue, job.queue));
}

}  // namespace renzan::cluster
