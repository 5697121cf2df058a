#include "renzan/cluster/core/schedule.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/explain/feasibility.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/order/reservations.h"
#include "renzan/cluster/core/place/avoidance.h"
#include "renzan/cluster/core/place/placement.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/preempt/cadence.h"
#include "renzan/cluster/core/preempt/compaction.h"
#include "renzan/cluster/core/preempt/leaving.h"
#include "renzan/cluster/core/preempt/preemption.h"
#include "renzan/cluster/core/resize/elastic.h"
#include "renzan/cluster/core/resize/pools.h"

namespace renzan::cluster {
namespace {

// How many searches for a compaction a cycle makes at most; each looks at many nodes.
constexpr int kMostCompactions = 8;
// How many purchases a cycle tries at most; each try is a cycle of its own.
constexpr int kMostPurchases = 8;

class SchedulingCycle final : private PreemptionOracle {
 public:
  SchedulingCycle(const Snapshot& snapshot, const ScheduleOptions& options)
      : snapshot_(snapshot),
        options_(options),
        view_(snapshot),
        quota_(view_),
        occupants_(view_),
        feasibility_(view_),
        ranks_(snapshot, options.levels),
        entitlement_(view_, quota_, occupants_, ranks_,
                     [this](const Job& job) { return CouldStart(job); }),
        preemption_(view_, occupants_, ranks_),
        reservations_(view_, occupants_, ranks_, options.max_reserved_share,
                      options.overdue_after_ms) {}

  Decisions Run() && {
    Decide();
    ScalePools(snapshot_, decisions_, this);
    return std::move(decisions_);
  }

 private:
  // Decides everything except which nodes are bought and returned.
  void Decide() {
    decisions_.waits.reserve(snapshot_.jobs.size() - view_.holders().size());
    LeaveDrainingNodes(view_, quota_, occupants_, decisions_);
    EnforceUserCaps(view_, quota_, occupants_, ranks_, decisions_);
    pending_.emplace(view_, quota_, ranks_, options_.overdue_after_ms);
    while (const Job* job = pending_->Next()) Consider(*job);
    for (const Job* job : reservations_.Candidates(decisions_.waits))
      reservations_.Add(*job, quota_, preemption_, AsPreemptor(*job));
    if (!decisions_.waits.empty()) LookAgainWhenLevelsChange();
    GrowElasticJobs(view_, quota_, entitlement_, occupants_, options_.min_between_resizes_ms,
                    decisions_);
    RequestCheckpoints(snapshot_, options_.max_checkpoint_interval_ms, decisions_);
    decisions_.reservations = reservations_.all();
    decisions_.look_again = std::min(decisions_.look_again, reservations_.LookAgain());
    std::sort(decisions_.reservations.begin(), decisions_.reservations.end(),
              [](const Reservation& a, const Reservation& b) { return a.job < b.job; });
  }

  void Consider(const Job& job) {
    const TimeMs overdue_at = OverdueAt(job, options_.overdue_after_ms);
    if (overdue_at > snapshot_.now)
      decisions_.look_again = std::min(decisions_.look_again, overdue_at);
    if (!job.held.empty()) return Wait(job, WaitReason::kInfeasible);
    if (job.eligible_at > snapshot_.now) {
      decisions_.look_again = std::min(decisions_.look_again, job.eligible_at);
      return Wait(job, WaitReason::kBackoff);
    }
    not_binding_ = reservations_.NotBinding(job);
    const EquivalenceKey key = KeyOf(job);
    if (last_ && last_->first == key && last_->second.Holds(job))
      return WaitAs(job, last_->second.wait);
    if (const auto known = wait_by_key_.find(key);
        known != wait_by_key_.end() && known->second.Holds(job)) {
      last_ = *known;
      return WaitAs(job, known->second.wait);
    }
    const size_t waits = decisions_.waits.size();
    Decide(job);
    // Equal jobs wait for the same reason, but each may have a claim of its own.
    if (decisions_.waits.size() > waits && pipelined_ != job.id && !reservations_.IsClaim(job.id))
      wait_by_key_.insert_or_assign(key, KnownWait{decisions_.waits.back(), job.waiting_since});
  }

  void Decide(const Job& job) {
    reservations_.Lift(not_binding_);
    const size_t starts = decisions_.starts.size();
    DecideOnNodes(job);
    const bool started = decisions_.starts.size() > starts, pipelined = pipelined_ == job.id;
    if (started && reservations_.Of(job.id) != nullptr) reservations_.GiveUp(job);
    reservations_.Restore(not_binding_, started || pipelined ? job.id : 0);
    if (!started && !pipelined) KeepClaim(job, decisions_.waits.back().reason);
  }

  void KeepClaim(const Job& job, WaitReason reason) {
    // Its queue may be at the limit only by what this cycle starts: if the claim ended, others
    // would take its place, keep those from starting, and end in turn.
    const bool for_now = reason == WaitReason::kQueueLimit && reservations_.IsClaim(job.id) &&
                         !Quota(view_).Forbids(job, job.min_workers);
    if (reason == WaitReason::kResources || reason == WaitReason::kFragmented ||
        reason == WaitReason::kReserved || for_now)
      reservations_.Claim(job, quota_, preemption_, AsPreemptor(job));
    else if (reason != WaitReason::kNodesBooting)
      reservations_.EndClaim(job);
  }

  void DecideOnNodes(const Job& job) {
    const std::optional<WaitReason> forbidden = quota_.Forbids(job, job.min_workers);
    if (forbidden && forbidden != WaitReason::kQueueLimit) return WaitForQuota(job, *forbidden);
    if (!forbidden && (Start(job, /*unreserved=*/true) || PipelineOntoReleasing(job))) return;
    if (Preempt(job) || (!forbidden && Compact(job))) return;
    if (forbidden) return WaitForQuota(job, *forbidden);
    if (feasibility_.RulesOut(job)) return Wait(job, WaitReason::kInfeasible);
    if (!reservations_.none() && MayBackfill(job) && Start(job, /*unreserved=*/false)) return;
    WaitForResources(job);
  }

  void LookAgainWhenLevelsChange() {
    const ServiceLevels& levels = ranks_.levels();
    TimeMs& look_again = decisions_.look_again;
    FairShares::Running running;
    for (const int index : occupants_.jobs()) {
      const Job& job = snapshot_.jobs[index];
      const int workers = NumWorkers(job.placement);
      look_again = std::min(look_again, levels.NextChange(job, workers, job.started));
      running.emplace_back(&job, workers);
    }
    for (const cluster::Start& start : decisions_.starts) {
      const Job& job = *snapshot_.Find(start.job);
      const int workers = NumWorkers(start.placement);
      look_again = std::min(look_again, levels.NextChange(job, workers, snapshot_.now));
      running.emplace_back(&job, workers);
    }
    look_again = std::min(look_again, ranks_.fair_shares().NextChange(running));
  }

  // Jobs with equal keys are interchangeable: what kept one from starting keeps the others too,
  // since free resources and quota only shrink during the cycle.
  struct EquivalenceKey {
    int not_binding;  // reservations
    int request, queue, user, workers;
    Rank rank;
    bool checkpoints, backfills, preemptible;
    bool operator==(const EquivalenceKey&) const = default;
  };
  struct HashEquivalenceKey {
    size_t operator()(const EquivalenceKey& key) const {
      size_t hash = key.rank.Hash();
      for (const int part : {key.not_binding, key.request, key.queue, key.user, key.workers,
                             key.checkpoints + 2 * key.backfills + 4 * key.preemptible})
        hash = (hash ^ static_cast<size_t>(part)) * 0x9e3779b97f4a7c15u;
      return hash ^ hash >> 32;
    }
  };
  // What keeps a job from starting, and others with its key that have waited no longer: for a job
  // that has waited longer, moves may cost more.
  struct KnownWait {
    cluster::Wait wait;
    TimeMs waiting_since;
    bool Holds(const Job& job) const { return job.waiting_since >= waiting_since; }
  };
  EquivalenceKey KeyOf(const Job& job) const {
    return {not_binding_,   job.request,     job.queue,        job.user,       job.min_workers,
            ranks_.Of(job), job.checkpoints, MayBackfill(job), job.preemptible};
  }

  // A job that has made room for reservations too often must wait for unreserved resources.
  bool MayBackfill(const Job& job) const {
    return SavesWhenStopped(job) && job.preemptible &&
           job.reservation_yields < options_.max_yields_to_backfill;
  }

  const Resources& Each(const Job& job) const {
    return snapshot_.worker_requests[job.request].per_worker;
  }

  void WaitAs(const Job& job, const cluster::Wait& wait) {
    decisions_.waits.push_back({job.id, wait.reason, wait.blocked_by});
  }

  void Wait(const Job& job, WaitReason reason, JobId blocked_by = 0) {
    decisions_.waits.push_back({job.id, reason, blocked_by});
  }

  // Elastic jobs start at their minimum and grow once the whole queue has been processed. Jobs
  // bound to a topology domain never grow later, and grand challenges go before all others: they
  // take all they can now.
  int MostWorkers(const Job& job) const {
    if (!snapshot_.worker_requests[job.request].topology_required && !ranks_.IsUnbound(job))
      return job.min_workers;
    return std::max(
        job.min_workers,
        quota_.MostAllowed(job, job.min_workers + entitlement_.MoreWorkers(job, job.min_workers)));
  }

  std::optional<Placement> Find(const Job& job, Room room, bool unreserved) {
    const RequestKey key(not_binding_, job.request, job.checkpoints, room == Room::kNow,
                         unreserved);
    if (unplaceable_.Known(key, job.min_workers)) return std::nullopt;
    std::optional<Placement> found = FindPlacement(
        view_, {.request = job.request,
                .min_workers = job.min_workers,
                .max_workers = room == Room::kNow ? MostWorkers(job) : job.min_workers,
                .checkpoints = job.checkpoints,
                .room = room,
                .unreserved = unreserved});
    if (!found) unplaceable_.Add(key, job.min_workers);
    return found;
  }

  bool Start(const Job& job, bool unreserved) {
    std::optional<Placement> placement = Find(job, Room::kNow, unreserved);
    if (!placement) return false;
    view_.TakeNow(Each(job), *placement, !unreserved);
    quota_.Add(job, NumWorkers(*placement));
    entitlement_.Take(job, NumWorkers(*placement) - job.min_workers);
    pending_->Served();
    decisions_.starts.push_back({job.id, std::move(*placement), !unreserved});
    return true;
  }

  bool PipelineOntoReleasing(const Job& job) {
    const std::optional<Placement> placement = Find(job, Room::kFuture, /*unreserved=*/true);
    if (!placement) return false;
    Pipeline(job, *placement);
    return true;
  }

  void Pipeline(const Job& job, const Placement& placement) {
    view_.TakeFuture(Each(job), placement);
    reservations_.MoveTo(job, placement, not_binding_);
    quota_.Add(job, NumWorkers(placement));
    pending_->Served();
    pipelined_ = job.id;
    Wait(job, Boots(placement) ? WaitReason::kNodesBooting : WaitReason::kPipelined);
  }

  bool Boots(const Placement& placement) const {
    return std::any_of(placement.begin(), placement.end(), [&](const Placed& placed) {
      return snapshot_.nodes[placed.node].state == NodeState::kBooting;
    });
  }

  // Until its nodes are up, which may never happen, nobody is stopped for it; but the room it will
  // have without them is kept for it. A job with a reservation has that room already.
  void WaitForBoot(const Job& job, const Placement& placement) {
    if (reservations_.Of(job.id) == nullptr) {
      Placement room;
      for (const auto& [node, workers] : placement) {
        const int fit = view_.Count(snapshot_.worker_requests[job.request], node, Room::kFuture,
                                    /*unreserved=*/true);
        if (fit > 0) room.push_back({node, std::min(workers, fit)});
      }
      view_.TakeFuture(Each(job), room);
      quota_.Add(job, job.min_workers);
      pipelined_ = job.id;
    }
    pending_->Served();
    Wait(job, WaitReason::kNodesBooting);
  }

  Preemptor AsPreemptor(const Job& job) const {
    return {&job, ReclaimsOf(job, ranks_, quota_), reservations_.Of(job.id), not_binding_};
  }

  bool Preempt(const Job& job) {
    const Preemptor preemptor = AsPreemptor(job);
    const std::optional<VictimPlan> plan = preemption_.Plan(preemptor, quota_);
    if (!plan) return false;
    if (Boots(plan->placement)) {
      WaitForBoot(job, plan->placement);
      return true;
    }
    std::vector<std::optional<StopReason>> rights;
    for (const Victim& victim : plan->victims)
      rights.push_back(preemption_.rights().ToStop(preemptor, snapshot_.jobs[victim.job], quota_));
    for (size_t at = 0; at < plan->victims.size(); ++at)
      ApplyVictim(plan->victims[at], rights[at], job.id);
    RoomWasMade();
    Pipeline(job, plan->placement);
    return true;
  }

  bool Compact(const Job& job) {
    const int kind = view_.packing_kind();
    const int64_t size = Each(job)[kind] * job.min_workers;
    if (compactions_ == kMostCompactions || size < 2 || view_.free_now()[kind] == 0) return false;
    const Preemptor preemptor = AsPreemptor(job);
    const bool of_queue = quota_.guarantees() || ranks_.DependsOnQueue(job);
    const CompactionKey key(job.request, of_queue ? job.queue : -1, ranks_.Of(job),
                            preemptor.reclaims, not_binding_);
    if (const auto known = uncompactable_.find(key);
        known != uncompactable_.end() && job.min_workers >= known->second.workers &&
        job.waiting_since >= known->second.waiting_since)
      return false;
    ++compactions_;
    const std::optional<CompactionPlan> plan = PlanCompaction(
        view_, quota_, occupants_, preemption_, preemptor, options_.min_between_resizes_ms);
    if (!plan) {
      uncompactable_.insert_or_assign(key, Uncompactable{job.min_workers, job.waiting_since});
      return false;
    }
    std::vector<std::optional<StopReason>> rights;
    for (const Victim& victim : plan->stops)
      rights.push_back(preemption_.rights().ToStop(preemptor, snapshot_.jobs[victim.job], quota_));
    for (size_t at = 0; at < plan->stops.size(); ++at)
      ApplyVictim(plan->stops[at], rights[at], job.id);
    for (const Move& move : plan->moves) {
      const Job& moved = snapshot_.jobs[move.job];
      view_.Release(Each(moved), moved.placement, moved.backfilled);
      occupants_.Leave(move.job);
      decisions_.resizes.push_back({moved.id, move.target, job.id});
    }
    RoomWasMade();
    Pipeline(job, plan->placement);
    for (const Move& move : plan->moves)
      view_.TakeNow(Each(snapshot_.jobs[move.job]), move.target, /*backfilled=*/false);
    return true;
  }

  void RoomWasMade() {
    uncompactable_.clear();
    unplaceable_.Clear();
    wait_by_key_.clear();
    last_.reset();
  }

  void ApplyVictim(const Victim& victim, std::optional<StopReason> right, JobId on_behalf_of) {
    const Job& job = snapshot_.jobs[victim.job];
    view_.Release(Each(job), victim.leaves, job.backfilled);
    quota_.Remove(job, NumWorkers(victim.leaves));
    occupants_.Leave(victim.job);
    if (victim.stopped) {
      CHECK(right.has_value());
      decisions_.stops.push_back({job.id, *right, on_behalf_of});
    } else {
      decisions_.resizes.push_back(
          {job.id, Difference(job.placement, victim.leaves), on_behalf_of});
    }
  }

  Right RightOf(const Job& job) const override { return ranks_.Of(job).right; }

  int MinWorkersOnNewNodes(const Job& job) const override {
    const int64_t stopped = preemption_.ReachOf(AsPreemptor(job), quota_).amount;
    const int64_t each = Each(job)[view_.packing_kind()];
    if (stopped == 0) return job.min_workers;
    if (each == 0) return 1;
    const int64_t room = std::max<int64_t>(0, stopped + view_.free_future()) / each;
    return std::max<int>(
        1, job.min_workers - static_cast<int>(std::min<int64_t>(room, job.min_workers)));
  }

  bool WouldFit(const Job& job, const std::vector<ScaleOut>& bought) override {
    if (purchases_tried_ == kMostPurchases) return false;
    ++purchases_tried_;
    Snapshot next = snapshot_;
    for (const ScaleOut& scale : bought)
      for (int node = 0; node < scale.nodes; ++node) ChangeNode(NodeToBuy(next, scale.pool), next);
    SchedulingCycle cycle(next, options_);
    cycle.Decide();
    return std::ranges::any_of(cycle.decisions_.waits, [&](const cluster::Wait& wait) {
      return wait.job == job.id &&
             (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting);
    });
  }

  bool CouldStart(const Job& job) {
    if (job.eligible_at > snapshot_.now) return false;
    const std::optional<WaitReason> forbidden = quota_.Forbids(job, job.min_workers);
    // At the queue limit it may still preempt jobs of its own queue.
    if (forbidden && forbidden != WaitReason::kQueueLimit) return false;
    return !feasibility_.RulesOut(job);
  }

  void WaitForQuota(const Job& job, WaitReason reason) {
    Wait(job, feasibility_.RulesOut(job) ? WaitReason::kInfeasible : reason);
  }

  void WaitForResources(const Job& job) {
    if (feasibility_.RulesOut(job)) return Wait(job, WaitReason::kInfeasible);
    if (!reservations_.none())
      if (const auto reserved = Find(job, Room::kNow, /*unreserved=*/false))
        if (const JobId owner = reservations_.OwnerOf(*reserved, not_binding_); owner != 0)
          return Wait(job, WaitReason::kReserved, owner);
    const bool enough = (Each(job) * job.min_workers).FitsIn(view_.free_now());
    Wait(job, enough ? WaitReason::kFragmented : WaitReason::kResources);
  }

  // Request, queue (if it makes a difference), rank, reclaims, reservations that do not bind it.
  using CompactionKey = std::tuple<int, int, Rank, Reclaims, int>;
  // Reservations that do not bind it, request, checkpoints, now, unreserved.
  using RequestKey = std::tuple<int, int, bool, bool, bool>;

  const Snapshot& snapshot_;
  const ScheduleOptions& options_;
  ClusterView view_;
  Quota quota_;
  Occupants occupants_;
  Feasibility feasibility_;
  Ranks ranks_;
  Entitlement entitlement_;  // asks CouldStart
  Preemption preemption_;
  Reservations reservations_;
  std::optional<PendingQueue> pending_;
  Decisions decisions_;
  int compactions_ = 0, purchases_tried_ = 0;
  int not_binding_ = 0;  // the reservations that do not bind the job that is considered
  JobId pipelined_ = 0;  // the last job that was pipelined
  std::unordered_map<EquivalenceKey, KnownWait, HashEquivalenceKey> wait_by_key_;
  // The entry used last; the next job is likely to match it.
  std::optional<std::pair<EquivalenceKey, KnownWait>> last_;
  Failures<RequestKey> unplaceable_;
  // For gangs of this size or larger that have waited no longer.
  struct Uncompactable {
    int workers;
    TimeMs waiting_since;
  };
  std::map<CompactionKey, Uncompactable> uncompactable_;
};

}  // namespace

Decisions Schedule(const Snapshot& snapshot, const ScheduleOptions& options) {
  if (!HasAvoidance(snapshot)) return SchedulingCycle(snapshot, options).Run();
  const Snapshot avoiding = WithAvoidance(snapshot);
  Decisions decisions = SchedulingCycle(avoiding, options).Run();
  for (const Wait& wait : decisions.waits) {
    const TimeMs end = NextEndOfAvoidance(snapshot, *snapshot.Find(wait.job));
    decisions.look_again = std::min(decisions.look_again, end);
  }
  return decisions;
}

}  // namespace renzan::cluster
