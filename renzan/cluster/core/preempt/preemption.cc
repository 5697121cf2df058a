#include "renzan/cluster/core/preempt/preemption.h"

#include <algorithm>
#include <cmath>

namespace renzan::cluster {

Preemption::Preemption(const ClusterView& view, const Occupants& occupants, const Ranks& ranks)
    : view_(view),
      snapshot_(view.snapshot()),
      occupants_(occupants),
      ranks_(ranks),
      rights_(snapshot_, ranks),
      group_of_(snapshot_.jobs.size(), -1) {
  std::map<Kind, int> known;
  for (const int index : occupants.jobs()) {
    const Job& job = snapshot_.jobs[index];
    if (!job.preemptible) continue;
    const int workers = NumWorkers(job.placement);
    const bool elastic = SavesWhenStopped(job) && workers > job.min_workers;
    const Kind kind(job.queue, ranks.Of(job), ranks.levels().MayBePreempted(job), job.backfilled,
                    elastic, elastic && ranks.levels().MayShrinkForEquals(job));
    const auto [at, is_new] = known.try_emplace(kind, static_cast<int>(groups_.size()));
    if (is_new) groups_.push_back({&job, 0, 0, NodeSet(view.num_nodes())});
    group_of_[index] = at->second;
    Group& group = groups_[at->second];
    const int64_t each = snapshot_.worker_requests[job.request].per_worker[view.packing_kind()];
    group.all += each * workers;
    group.surplus += each * (workers - job.min_workers);
    for (const Placed& placed : job.placement) group.nodes.Add(placed.node);
  }
}

// A queue that loses more than it has borrowed will reclaim in turn, causing further preemptions.
// Victims that avoid this come first.
double Preemption::CostBelowGuarantee(const Preemptor& preemptor, int index,
                                      const Quota& quota) const {
  constexpr double kMoreThanAnyWork = 1e12;
  const Job& victim = snapshot_.jobs[index];
  if (victim.queue == preemptor.job->queue || victim.backfilled) return 0;
  const int side = SideOf(snapshot_, victim.queue, preemptor.job->queue);
  if (!quota.HasGuarantee(side, victim, NumWorkers(victim.placement))) return kMoreThanAnyWork;
  // What is lent within a parent stays so for longer than what is lent beyond it, as far as the
  // parent's queues use no more than it is guaranteed. The topmost parent decides first: whoever
  // stays within its quota would in turn reclaim what it has lent to others.
  constexpr double kMoreThanMostWork = 1e11;
  double cost = 0;
  for (const int parent : LineageOf(snapshot_, preemptor.job->queue)) {
    if (parent == preemptor.job->queue) continue;
    const bool stays_within =
        quota.WithinGuarantee(parent, *preemptor.job, preemptor.job->min_workers);
    cost /= 2;
    if (IsWithin(snapshot_, victim.queue, parent) == stays_within) cost += kMoreThanMostWork;
  }
  return cost;
}

// A victim with less service would in turn preempt those with more: the most served come first.
double Preemption::CostOf(const Preemptor& preemptor, int index, const Quota& quota) const {
  constexpr double kPerLevel = 16;
  const ServiceLevels& levels = ranks_.levels();
  const int below_top = levels.top() - levels.Of(snapshot_.jobs[index]);
  return occupants_.cost(index) * std::pow(kPerLevel, below_top) +
         CostBelowGuarantee(preemptor, index, quota);
}

Preemption::Reach Preemption::ReachOf(const Preemptor& preemptor, const Quota& quota) const {
  Reach reach{0, {NodeSet(view_.num_nodes()), NodeSet(view_.num_nodes())}, {}};
  for (const Group& group : groups_) {
    // Whether backfilled jobs yield depends on their nodes: here all of them might.
    const bool stops = rights_.ToStop(preemptor, *group.example, quota).has_value() ||
                       (preemptor.reserved != nullptr && group.example->backfilled);
    reach.stops.push_back(stops);
    const bool shrinks = rights_.ToShrink(preemptor, *group.example, quota);
    if (!stops && !shrinks) continue;
    reach.amount += stops ? group.all : group.surplus;
    reach.nodes.all |= group.nodes;
    if (shrinks) reach.nodes.shrinkable |= group.nodes;
  }
  return reach;
}

std::optional<std::vector<int>> Preemption::ForLimit(const Preemptor& preemptor,
                                                     Quota quota) const {
  const Job& job = *preemptor.job;
  std::vector<int> candidates, chosen;
  for (const int index : occupants_.jobs()) {
    const Job& victim = snapshot_.jobs[index];
    if (victim.queue == job.queue && rights_.ToStop(preemptor, victim, quota) &&
        !occupants_.leaving(index))
      candidates.push_back(index);
  }
  std::sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    return std::tuple(occupants_.cost(a), -a) < std::tuple(occupants_.cost(b), -b);
  });
  for (const int index : candidates) {
    if (quota.Forbids(job, job.min_workers) != WaitReason::kQueueLimit) break;
    quota.Remove(snapshot_.jobs[index], NumWorkers(snapshot_.jobs[index].placement));
    chosen.push_back(index);
  }
  if (quota.Forbids(job, job.min_workers)) return std::nullopt;
  return chosen;
}

std::optional<VictimPlan> Preemption::Plan(const Preemptor& preemptor, const Quota& quota) {
  const Job& job = *preemptor.job;
  // Without guaranteed quotas nothing is borrowed, so queues make no difference.
  const bool of_queue = quota.guarantees() || ranks_.DependsOnQueue(job);
  const std::tuple key(job.request, of_queue ? job.queue : -1, ranks_.Of(job), preemptor.reclaims,
                       preemptor.not_binding);
  if (failures_.Known(key, job.min_workers)) return std::nullopt;
  std::vector<int> stop_first;
  std::optional<Reach> reach;
  if (const auto forbidden = quota.Forbids(job, job.min_workers)) {
    if (forbidden != WaitReason::kQueueLimit) return std::nullopt;
    std::optional<std::vector<int>> chosen = ForLimit(preemptor, quota);
    if (!chosen) return std::nullopt;
    stop_first = std::move(*chosen);
  } else {
    reach = ReachOf(preemptor, quota);
    const int64_t needed =
        snapshot_.worker_requests[job.request].per_worker[view_.packing_kind()] * job.min_workers;
    if (reach->amount == 0 || reach->amount + view_.free_future() < needed) {
      failures_.Add(key, job.min_workers);
      return std::nullopt;
    }
  }
  const VictimRules rules{
      .may_stop =
          [&](const Job& victim, const Quota& then) {
            return (!reach || MightStop(*reach, victim)) &&
                   rights_.ToStop(preemptor, victim, then).has_value();
          },
      .may_shrink = [&](const Job& victim,
                        const Quota& then) { return rights_.ToShrink(preemptor, victim, then); },
      .cost = [&](int index, const Quota& then) { return CostOf(preemptor, index, then); }};
  std::optional<VictimPlan> plan = FindVictims(view_, quota, occupants_, job, rules, stop_first,
                                               reach ? &reach->nodes : nullptr);
  if (!plan) failures_.Add(key, job.min_workers);
  return plan;
}

}  // namespace renzan::cluster
