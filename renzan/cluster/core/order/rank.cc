#include "renzan/cluster/core/order/rank.h"

namespace renzan::cluster {

std::vector<std::pair<const char*, int>> Rank::Terms() const {
  std::vector<std::pair<const char*, int>> terms = {{"priority", right.priority}};
  if (use.level > 0) terms.emplace_back("use_level", use.level);
  terms.emplace_back("level", service.level);
  return terms;
}

const char* WhyAhead(const Rank& first, const Rank& second) {
  if (first.standing != second.standing) {
    if (first.standing == Standing::kUnbound) return "a grand challenge";
    if (first.standing == Standing::kWithinQuota) return "within its queue's quota";
    return second.standing == Standing::kBorrows ? "within the quota of its queue's parent"
                                                 : "within the quota of a nearer parent";
  }
  if (first.right != second.right) return "of higher priority";
  return first.use != second.use ? "of a user who has used less of the queue lately"
                                 : "with less service";
}

Standing StandingWithin(const Snapshot& snapshot, int queue, int above) {
  return queue == above ? Standing::kWithinQuota
                        : static_cast<Standing>(Queue::kMostLevels - DepthOf(snapshot, above));
}

Ranks::Ranks(const Snapshot& snapshot, const ServiceLevelOptions& options)
    : levels_(snapshot, options),
      fair_shares_(snapshot),
      snapshot_(snapshot),
      first_(snapshot.jobs.data()) {
  ranks_.reserve(snapshot.jobs.size());
  for (const Job& job : snapshot.jobs)
    ranks_.push_back({.standing = job.quota_exempt ? Standing::kUnbound : Standing::kBorrows,
                      .right = {job.priority},
                      .use = {fair_shares_.LevelOf(job.queue, job.user)},
                      .service = {levels_.Of(job)}});
}

std::optional<StopReason> Ranks::WhyItMayStop(const Job& job, const Job& victim) const {
  const Rank &its = Of(job), &of_victim = Of(victim);
  if (its.right < of_victim.right) return StopReason::kPreempted;
  const bool has_used_more = job.queue == victim.queue && its.use > of_victim.use;
  if (its.right == of_victim.right && !has_used_more && its.service < of_victim.service &&
      levels_.MayBePreempted(victim))
    return StopReason::kTimeShared;
  return std::nullopt;
}

Reclaims ReclaimsOf(const Job& job, const Ranks& ranks, const Quota& quota) {
  const Snapshot& snapshot = ranks.snapshot();
  for (const int above : LineageOf(snapshot, job.queue))
    if (ranks.Of(job).standing <= StandingWithin(snapshot, job.queue, above) &&
        quota.WithinGuarantee(above, job, job.min_workers))
      return {above};
  return {};
}

bool IsReclaim(const Snapshot& snapshot, const Reclaims& reclaims, const Job& job,
               const Job& victim) {
  return reclaims.within >= 0 && job.queue != victim.queue &&
         IsWithin(snapshot, reclaims.within, SideOf(snapshot, job.queue, victim.queue));
}

}  // namespace renzan::cluster
