#include "renzan/cluster/core/order/rank.h"

namespace renzan::cluster {

std::vector<std::pair<const char*, int>> Rank::Terms() const {
  return {{"priority", right.priority}, {"level", service.level}};
}

const char* WhyAhead(const Rank& first, const Rank& second) {
  if (first.beyond_quota != second.beyond_quota) return "within its queue's quota";
  return first.right != second.right ? "of higher priority" : "with less service";
}

Ranks::Ranks(const Snapshot& snapshot, const ServiceLevelOptions& options)
    : levels_(snapshot, options), first_(snapshot.jobs.data()) {
  ranks_.reserve(snapshot.jobs.size());
  for (const Job& job : snapshot.jobs)
    ranks_.push_back({.right = {job.priority}, .service = {levels_.Of(job)}});
}

std::optional<StopReason> Ranks::WhyItMayStop(const Job& job, const Job& victim) const {
  const Rank &its = Of(job), &of_victim = Of(victim);
  if (its.right < of_victim.right) return StopReason::kPreempted;
  if (its.right == of_victim.right && its.service < of_victim.service &&
      levels_.MayBePreempted(victim))
    return StopReason::kTimeShared;
  return std::nullopt;
}

}  // namespace renzan::cluster
