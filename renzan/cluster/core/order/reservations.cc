#include "renzan/cluster/core/order/reservations.h"

#include <algorithm>
#include <tuple>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/predict/run_times.h"

namespace renzan::cluster {
namespace {

// This many jobs may look for nodes to reserve in one cycle; each search examines many nodes.
constexpr size_t kCandidates = 4;

// Nearly all jobs like one take longer than the first, and less than the second of these shares.
constexpr double kHardlyAny = kQuantiles.front(), kNearlyAll = kQuantiles.back();

// How much longer a running job will run: this share of the jobs like it need less.
TimeMs RemainingMs(const Job& job, TimeMs now, double share) {
  if (job.expected_end) return std::max<TimeMs>(*job.expected_end - now, 0);
  return RemainingQuantile(job.run_time, ProgressOf(job, now), share);
}

// When a pending job will very likely have ended, if it starts now; kNever if that is not known, or
// after `latest`. Not for jobs that can be backfilled: they yield if the prediction was wrong.
TimeMs EndIfStarted(const Job& job, TimeMs now, TimeMs latest) {
  if (job.run_time.back() == 0 || (SavesWhenStopped(job) && job.preemptible)) return kNever;
  const TimeMs progress = ProgressOf(job, now);
  // Many jobs wait: most are ruled out without logarithms.
  if (now + job.run_time.back() - progress > latest) return kNever;
  return now + (progress > 0 ? job.restart_cost_ms : 0) +
         RemainingQuantile(job.run_time, progress, kNearlyAll);
}

// Nodes change their labels when the configuration does.
bool IsInOneDomain(const Snapshot& snapshot, const Placement& placement,
                   const WorkerRequest& request) {
  if (!request.topology_required || placement.empty()) return true;
  if (request.topology_level == kHostLevel) return placement.size() == 1;
  const auto domain = [&](const Placed& placed) {
    return DomainOf(snapshot, snapshot.nodes[placed.node].labels, request.topology_level);
  };
  return std::all_of(placement.begin(), placement.end(), [&](const Placed& placed) {
    return !domain(placed).empty() && domain(placed) == domain(placement.front());
  });
}

// Whether the end of one of the victims alone makes room for the gang, however full the rest is.
bool FitsAfterOneJobEnds(const Snapshot& snapshot, const Job& gang, const VictimPlan& plan) {
  if (plan.placement.size() != 1) return false;
  const Resources needs = snapshot.worker_requests[gang.request].per_worker * gang.min_workers;
  return std::any_of(plan.victims.begin(), plan.victims.end(), [&](const Victim& victim) {
    const Job& job = snapshot.jobs[victim.job];
    return std::any_of(job.placement.begin(), job.placement.end(), [&](const Placed& placed) {
      return needs.FitsIn(snapshot.worker_requests[job.request].per_worker * placed.workers);
    });
  });
}

}  // namespace

Reservations::Reservations(ClusterView& view, const Occupants& occupants, const Ranks& ranks,
                           double share, TimeMs overdue_after)
    : view_(view),
      occupants_(occupants),
      ranks_(ranks),
      overdue_after_(overdue_after),
      most_(share * static_cast<double>(view.total()[view.packing_kind()])) {
  const Snapshot& snapshot = view.snapshot();
  for (const int index : occupants.jobs())
    if (const Job& job = snapshot.jobs[index]; IsFixed(job))
      least_fixed_ = std::max(least_fixed_.value_or(ranks.Of(job).right), ranks.Of(job).right);
  for (const Reservation& reservation : snapshot.reservations) {
    if (!CanBeUsed(reservation)) continue;
    const Job& owner = *snapshot.Find(reservation.job);
    const bool for_waiting = snapshot.now >= OverdueAt(owner, overdue_after) &&
                             CostsNoMoreThanItsShare(owner, reservation.placement);
    if (for_waiting || IsByPriority(owner, reservation.placement))
      Keep(owner, reservation.placement, !for_waiting);
  }
}

void Reservations::Keep(const Job& owner, Placement placement, bool claim) {
  const TimeMs whole = WholeAt(owner, placement, kHardlyAny);
  terms_[owner.id] = {claim, whole};
  if (whole != kNever) last_whole_at_ = std::max(last_whole_at_, whole);
  if (!claim) reserved_ += SizeOf(owner);
  view_.Reserve(Each(owner), placement);
  all_.push_back({owner.id, std::move(placement)});
}

bool Reservations::CanBeUsed(const Reservation& reservation) const {
  const Snapshot& snapshot = view_.snapshot();
  const Job* owner = snapshot.Find(reservation.job);
  if (owner == nullptr || owner->state != JobState::kPending || !owner->held.empty() ||
      owner->eligible_at > snapshot.now || NumWorkers(reservation.placement) != owner->min_workers)
    return false;
  const WorkerRequest& request = snapshot.worker_requests[owner->request];
  return IsInOneDomain(snapshot, reservation.placement, request) &&
         std::all_of(reservation.placement.begin(), reservation.placement.end(),
                     [&](const Placed& placed) {
                       const Node& node = snapshot.nodes[placed.node];
                       return TakesWork(node.state) && Matches(node, request) &&
                              (request.per_worker * placed.workers).FitsIn(node.capacity);
                     });
}

int64_t Reservations::SizeOf(const Job& job) const {
  return std::max<int64_t>(1, Each(job)[view_.packing_kind()] * job.min_workers);
}

const Placement* Reservations::Of(JobId job) const {
  for (const Reservation& reservation : all_)
    if (reservation.job == job) return &reservation.placement;
  return nullptr;
}

bool Reservations::IsClaim(JobId job) const { return Of(job) != nullptr && terms_.at(job).claim; }

JobId Reservations::OwnerOf(const Placement& placement, int not_binding) const {
  const std::vector<JobId>& lifted = sets_[not_binding];
  for (const Reservation& reservation : all_)
    if (Overlap(reservation.placement, placement) &&
        std::find(lifted.begin(), lifted.end(), reservation.job) == lifted.end())
      return reservation.job;
  return 0;
}

TimeMs Reservations::WholeAt(const Job& owner, const Placement& placement, double share) const {
  const Snapshot& snapshot = view_.snapshot();
  TimeMs whole = snapshot.now;
  for (const Placed& placed : placement) {
    const Resources needed = Each(owner) * placed.workers;
    Resources room = view_.Free(placed.node, Room::kFuture);
    std::vector<std::pair<TimeMs, Resources>> ends;
    for (const Occupants::Tenant& tenant : occupants_.On(placed.node)) {
      const Job& job = snapshot.jobs[tenant.job];
      const Resources amount = Each(job) * tenant.workers;
      if (job.backfilled || Yields(job, owner))
        room += amount;
      else
        ends.emplace_back(snapshot.now + RemainingMs(job, snapshot.now, share), amount);
    }
    std::sort(ends.begin(), ends.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    auto next = ends.begin();
    while (!needed.FitsIn(room)) {
      if (next == ends.end()) return kNever;
      whole = std::max(whole, next->first);
      room += next++->second;
    }
  }
  return whole;
}

bool Reservations::CostsNoMoreThanItsShare(const Job& owner, const Placement& placement) const {
  if (static_cast<double>(SizeOf(owner)) <= most_) return true;
  constexpr double kMedian = 0.5;
  const TimeMs now = view_.snapshot().now, whole = WholeAt(owner, placement, kMedian);
  return whole != kNever && static_cast<double>(SizeOf(owner)) * static_cast<double>(whole - now) <=
                                most_ * static_cast<double>(now - owner.waiting_since);
}

// By then, what is in its way may be expected to end much later than it is now.
TimeMs Reservations::LookAgain() const {
  TimeMs soonest = kNever;
  const TimeMs now = view_.snapshot().now;
  for (const Reservation& reservation : all_) {
    const Job& owner = *view_.snapshot().Find(reservation.job);
    if (!terms_.at(owner.id).claim && static_cast<double>(SizeOf(owner)) > most_)
      soonest = std::min(soonest, now + std::max(kHour / 4, (now - owner.waiting_since) / 16));
  }
  return soonest;
}

bool Reservations::Yields(const Job& job, const Job& owner) const {
  return job.preemptible && ranks_.Precedes(owner, job) && ranks_.Outranks(owner, job) &&
         (job.queue == owner.queue || !ranks_.WithinQuotaAgainst(job, owner));
}

bool Reservations::MustEndFor(const Job& job, const Job& owner) const {
  return IsFixed(job) && ranks_.Precedes(owner, job);
}

bool Reservations::IsByPriority(const Job& owner, const Placement& placement) const {
  return std::ranges::all_of(placement, [&](const Placed& placed) {
    Resources room = view_.Free(placed.node, Room::kFuture);
    for (const Occupants::Tenant& tenant : occupants_.On(placed.node))
      if (const Job& job = view_.snapshot().jobs[tenant.job];
          Yields(job, owner) || MustEndFor(job, owner))
        room += Each(job) * tenant.workers;
    return (Each(owner) * placed.workers).FitsIn(room);
  });
}

bool Reservations::Binds(const Reservation& reservation, const Job& job, TimeMs ends) const {
  const Job& owner = *view_.snapshot().Find(reservation.job);
  if (owner.id == job.id || ranks_.Precedes(job, owner)) return false;
  const auto& [claim, whole] = terms_.at(owner.id);
  if (claim && (Yields(job, owner) || !ranks_.Precedes(owner, job))) return false;
  return whole == kNever || ends > whole;
}

int Reservations::NotBinding(const Job& job) {
  if (none()) return 0;
  const TimeMs ends = EndIfStarted(job, view_.snapshot().now, last_whole_at_);
  std::vector<JobId> set;
  for (const Reservation& reservation : all_)
    if (!Binds(reservation, job, ends)) set.push_back(reservation.job);
  return NumberOf(std::move(set));
}

int Reservations::NumberOf(std::vector<JobId> set) {
  const auto [at, is_new] = numbers_.try_emplace(set, static_cast<int>(sets_.size()));
  if (is_new) sets_.push_back(std::move(set));
  return at->second;
}

void Reservations::Lift(int not_binding) {
  for (const JobId owner : sets_[not_binding])
    view_.Unreserve(Each(*view_.snapshot().Find(owner)), *Of(owner));
}

void Reservations::Restore(int not_binding, JobId without) {
  for (const JobId owner : sets_[not_binding])
    if (const Placement* nodes = Of(owner); nodes != nullptr && owner != without)
      view_.Reserve(Each(*view_.snapshot().Find(owner)), *nodes);
}

void Reservations::MoveTo(const Job& owner, const Placement& placement, int not_binding) {
  for (Reservation& reservation : all_) {
    if (reservation.job != owner.id) continue;
    reservation.placement = placement;
    std::vector<JobId> others = sets_[not_binding];
    std::erase(others, owner.id);
    GiveUpBeyondCapacity(others);
    return;
  }
}

void Reservations::GiveUpBeyondCapacity(const std::vector<JobId>& owners) {
  const Snapshot& snapshot = view_.snapshot();
  const auto is_beyond = [&](const Placed& placed) {
    Resources reserved;
    for (const Reservation& each : all_)
      for (const Placed& other : each.placement)
        if (other.node == placed.node) reserved += Each(*snapshot.Find(each.job)) * other.workers;
    return !reserved.FitsIn(snapshot.nodes[placed.node].capacity);
  };
  for (const JobId owner : owners)
    if (const Placement* nodes = Of(owner); std::ranges::any_of(*nodes, is_beyond))
      GiveUp(*snapshot.Find(owner));
}

void Reservations::GiveUp(const Job& owner) {
  if (!terms_.at(owner.id).claim) reserved_ -= SizeOf(owner);
  std::erase_if(all_, [&](const Reservation& each) { return each.job == owner.id; });
}

void Reservations::EndClaim(const Job& owner) {
  if (!IsClaim(owner.id)) return;
  view_.Unreserve(Each(owner), *Of(owner.id));
  GiveUp(owner);
}

bool Reservations::HasRoomFor(const Job& job) const {
  return reserved_ == 0 || static_cast<double>(reserved_ + SizeOf(job)) <= most_;
}

void Reservations::Claim(const Job& job, const Quota& quota, const Preemption& preemption,
                         const Preemptor& preemptor) {
  const bool has_nodes = Of(job.id) != nullptr;
  if (has_nodes && !terms_.at(job.id).claim) return;
  const auto precedes = [&](JobId other) {
    return ranks_.Precedes(job, *view_.snapshot().Find(other));
  };
  const bool too_large = claimed_ > 0 && static_cast<double>(claimed_ + SizeOf(job)) > most_;
  // Jobs for which room was made are considered before others that precede them.
  if (too_large && !std::ranges::all_of(claimants_, precedes)) {
    EndClaim(job);
    return;
  }
  if (!has_nodes) {
    if (!least_fixed_ || *least_fixed_ <= ranks_.Of(job).right || claims_tried_ == kCandidates)
      return;
    ++claims_tried_;
    std::vector<JobId> preceded;
    for (const Reservation& each : all_)
      if (ranks_.Precedes(job, *view_.snapshot().Find(each.job))) preceded.push_back(each.job);
    const int lifted = NumberOf(std::move(preceded));
    Lift(lifted);
    std::optional<VictimPlan> plan =
        LeastToEnd(job, quota, preemption, preemptor, [&](const Job& blocker, const Quota&) {
          return Yields(blocker, job) || MustEndFor(blocker, job);
        });
    if (plan) {
      Keep(job, std::move(plan->placement), /*claim=*/true);
      GiveUpBeyondCapacity(sets_[lifted]);
    }
    Restore(lifted, 0);
    if (!plan) return;
  }
  if (too_large) {
    for (const JobId other : claimants_) EndClaim(*view_.snapshot().Find(other));
    claimants_.clear();
    claimed_ = 0;
  }
  claimants_.push_back(job.id);
  claimed_ += SizeOf(job);
}

std::vector<const Job*> Reservations::Candidates(const std::vector<Wait>& waits) const {
  const Snapshot& snapshot = view_.snapshot();
  std::vector<std::pair<double, const Job*>> weighed;
  for (const Wait& wait : waits) {
    if (wait.reason != WaitReason::kResources && wait.reason != WaitReason::kFragmented &&
        wait.reason != WaitReason::kReserved)
      continue;
    const Job& job = *snapshot.Find(wait.job);
    if (snapshot.now < OverdueAt(job, overdue_after_) || Of(job.id) != nullptr || !HasRoomFor(job))
      continue;
    weighed.emplace_back(
        static_cast<double>(SizeOf(job)) * static_cast<double>(snapshot.now - job.waiting_since),
        &job);
  }
  const size_t count = std::min(kCandidates, weighed.size());
  std::partial_sort(weighed.begin(), weighed.begin() + static_cast<std::ptrdiff_t>(count),
                    weighed.end(), [](const auto& a, const auto& b) {
                      return std::tuple(-a.first, a.second->id) <
                             std::tuple(-b.first, b.second->id);
                    });
  std::vector<const Job*> heaviest;
  for (size_t at = 0; at < count; ++at) heaviest.push_back(weighed[at].second);
  return heaviest;
}

std::optional<VictimPlan> Reservations::LeastToEnd(
    const Job& job, const Quota& quota, const Preemption& preemption, const Preemptor& preemptor,
    const std::function<bool(const Job&, const Quota&)>& may_end) const {
  const Snapshot& snapshot = view_.snapshot();
  const VictimRules rules{
      .may_stop = may_end, .cost = [&](int index, const Quota& then) -> double {
        const Job& blocker = snapshot.jobs[index];
        if (blocker.backfilled || preemption.rights().ToStop(preemptor, blocker, then)) return 0;
        return static_cast<double>(Each(blocker)[view_.packing_kind()] *
                                   NumWorkers(blocker.placement)) *
               static_cast<double>(RemainingMs(blocker, snapshot.now, 0.5));
      }};
  std::optional<VictimPlan> plan = FindVictims(view_, quota, occupants_, job, rules);
  if (plan && FitsAfterOneJobEnds(snapshot, job, *plan)) return std::nullopt;
  return plan;
}

void Reservations::Add(const Job& job, const Quota& quota, const Preemption& preemption,
                       const Preemptor& preemptor) {
  if (!HasRoomFor(job)) return;
  std::optional<VictimPlan> plan =
      LeastToEnd(job, quota, preemption, preemptor, [](const Job&, const Quota&) { return true; });
  if (plan && CostsNoMoreThanItsShare(job, plan->placement))
    Keep(job, std::move(plan->placement), /*claim=*/false);
}

}  // namespace renzan::cluster
