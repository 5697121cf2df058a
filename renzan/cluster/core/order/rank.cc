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
    return first.standing == Standing::kWithinQuota ? "within its queue's quota"
                                                    : "within the quota of its queue's parent";
  }
  if (first.right != second.right) return "of higher priority";
  return first.use != second.use ? "of a user who has used less of the queue lately"
                                 : "with less service";
}

Ranks::Ranks(const Snapshot& snapshot, const ServiceLevelOptions& options)
    : levels_(snapshot, options), fair_shares_(snapshot), first_(snapshot.jobs.data()) {
  for (const Queue& queue : snapshot.queues) parents_.push_back(queue.parent);
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
  const std::optional<int> parent = ranks.ParentOf(job);
  const bool own = ranks.WithinQuota(job) && quota.WithinGuarantee(job.queue, job, job.min_workers);
  const bool stays_within_parents = parent && ranks.Of(job).standing <= Standing::kWithinParents &&
                                    quota.WithinGuarantee(*parent, job, job.min_workers);
  return {.own = own, .parents = parent && (own || stays_within_parents)};
}

}  // namespace renzan::cluster
