#include "renzan/cluster/core/preempt/compaction.h"

#include <algorithm>
#include <set>

#include "renzan/cluster/core/place/placement.h"

namespace renzan::cluster {
namespace {

// If some jobs of a plan find no room, the plan is tried again without them, at most this often.
constexpr int kMostTries = 3;

class Compaction {
 public:
  Compaction(const ClusterView& view, const Quota& quota, const Occupants& occupants,
             const Preemption& preemption, const Preemptor& preemptor,
             const Preemption::Reach& reach, TimeMs min_between_resizes)
      : view_(view),
        snapshot_(view.snapshot()),
        quota_(quota),
        occupants_(occupants),
        preemption_(preemption),
        preemptor_(preemptor),
        reach_(reach),
        min_between_resizes_(min_between_resizes),
        largest_hole_(view.LargestFree()) {}

  std::optional<CompactionPlan> Plan() {
    const VictimRules rules{
        .may_stop = [&](const Job& job,
                        const Quota& then) { return MayStop(job, then) || MayMove(job); },
        .cost =
            [&](int index, const Quota& then) {
              return MayMove(snapshot_.jobs[index]) ? occupants_.cost(index)
                                                    : preemption_.CostOf(preemptor_, index, then);
            }};
    VictimNodes where = reach_.nodes;
    for (const int index : occupants_.jobs()) {
      const Job& job = snapshot_.jobs[index];
      if (!MayMove(job)) continue;
      for (const Placed& placed : job.placement) where.all.Add(placed.node);
    }
    for (int tries = 0; tries < kMostTries; ++tries) {
      std::optional<VictimPlan> victims =
          FindVictims(view_, quota_, occupants_, *preemptor_.job, rules, {}, &where);
      if (!victims) return std::nullopt;
      if (std::optional<CompactionPlan> plan = FindRoomFor(*victims)) {
        if (CostsLessThanItGains(*plan)) return plan;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  bool MayStop(const Job& job, const Quota& then) const {
    return preemption_.MightStop(reach_, job) &&
           preemption_.rights().ToStop(preemptor_, job, then).has_value();
  }

  bool MayMove(const Job& job) const {
    // Most jobs are ruled out by their size: on a full cluster all holes are small.
    return Each(job)[view_.packing_kind()] <= largest_hole_ && job.preemptible &&
           job.held.empty() && !job.backfilled &&
           preemption_.ranks().IsNotBelow(*preemptor_.job, job) && !immovable_.contains(job.id) &&
           snapshot_.now - job.last_resize >= min_between_resizes_ &&
           preemption_.ranks().levels().MayBePreempted(job);
  }

  const Resources& Each(const Job& job) const {
    return snapshot_.worker_requests[job.request].per_worker;
  }

  // Finds targets for the victims that may not be stopped. If some find none, returns nothing and
  // marks them.
  std::optional<CompactionPlan> FindRoomFor(const VictimPlan& victims) {
    ClusterView after = view_;
    CompactionPlan plan{.placement = victims.placement};
    std::vector<int> movers;
    for (const Victim& victim : victims.victims) {
      const Job& job = snapshot_.jobs[victim.job];
      after.Release(Each(job), victim.leaves, job.backfilled);
      if (MayMove(job))
        movers.push_back(victim.job);
      else
        plan.stops.push_back(victim);
    }
    after.TakeFuture(Each(*preemptor_.job), victims.placement);
    // The largest first: they fit nowhere else.
    std::stable_sort(movers.begin(), movers.end(),
                     [&](int a, int b) { return SizeOf(a) > SizeOf(b); });
    bool all = true;
    for (const int index : movers) {
      const Job& job = snapshot_.jobs[index];
      const int workers = NumWorkers(job.placement);
      std::optional<Placement> target = FindPlacement(after, {.request = job.request,
                                                              .min_workers = workers,
                                                              .max_workers = workers,
                                                              .checkpoints = job.checkpoints});
      if (!target || *target == job.placement) {
        immovable_.insert(job.id);
        all = false;
        continue;
      }
      after.TakeNow(Each(job), *target, /*backfilled=*/false);
      plan.moves.push_back({index, std::move(*target)});
    }
    if (!all || plan.moves.empty()) return std::nullopt;
    return plan;
  }

  int64_t SizeOf(int index) const {
    const Job& job = snapshot_.jobs[index];
    return Each(job)[view_.packing_kind()] * NumWorkers(job.placement);
  }

  bool CostsLessThanItGains(const CompactionPlan& plan) const {
    double cost = 0;
    for (const Move& move : plan.moves) {
      const Job& job = snapshot_.jobs[move.job];
      cost +=
          static_cast<double>(SizeOf(move.job) * (job.checkpoint_cost_ms + job.restart_cost_ms));
    }
    const Job& gang = *preemptor_.job;
    const int64_t size = Each(gang)[view_.packing_kind()] * gang.min_workers;
    return cost < static_cast<double>(size * (snapshot_.now - gang.waiting_since));
  }

  const ClusterView& view_;
  const Snapshot& snapshot_;
  const Quota& quota_;
  const Occupants& occupants_;
  const Preemption& preemption_;
  const Preemptor& preemptor_;
  const Preemption::Reach& reach_;
  const TimeMs min_between_resizes_;
  const int64_t largest_hole_;
  std::set<JobId> immovable_;
};

}  // namespace

std::optional<CompactionPlan> PlanCompaction(const ClusterView& view, const Quota& quota,
                                             const Occupants& occupants,
                                             const Preemption& preemption,
                                             const Preemptor& preemptor,
                                             TimeMs min_between_resizes) {
  const Job& job = *preemptor.job;
  const int64_t needed =
      view.snapshot().worker_requests[job.request].per_worker[view.packing_kind()] *
      job.min_workers;
  const Preemption::Reach reach = preemption.ReachOf(preemptor, quota);
  // Moves take as much room as they leave.
  if (needed == 0 || reach.amount + view.free_future() < needed) return std::nullopt;
  return Compaction(view, quota, occupants, preemption, preemptor, reach, min_between_resizes)
      .Plan();
}

}  // namespace renzan::cluster
