#include "renzan/cluster/core/order/reservations.h"

#include <algorithm>
#include <tuple>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/core/preempt/victims.h"

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
bool OneEndServes(const Snapshot& snapshot, const Job& gang, const VictimPlan& plan) {
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

Reservations::Reservations(ClusterView& view, const Occupants& occupants,
                           const Entitlement& entitlement, double share, TimeMs overdue_after)
    : view_(view),
      occupants_(occupants),
      entitlement_(entitlement),
      overdue_after_(overdue_after),
      most_(share * static_cast<double>(view.total()[view.packing_kind()])) {
  for (const Reservation& reservation : view.snapshot().reservations) {
    if (!CanBeUsed(reservation)) continue;
    const Job& owner = *view.snapshot().Find(reservation.job);
    if (!CostsNoMoreThanItsShare(owner, reservation.placement)) continue;
    all_.push_back(reservation);
    const TimeMs whole = WholeAt(owner, reservation.placement, kHardlyAny);
    whole_at_[owner.id] = whole;
    if (whole != kNever) last_whole_at_ = std::max(last_whole_at_, whole);
    reserved_ += SizeOf(owner);
    view.Reserve(Each(owner), reservation.placement);
  }
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
      if (job.backfilled)
        room += amount;  // it yields
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

bool Reservations::Binds(const Reservation& reservation, const Job& job, TimeMs ends) const {
  if (reservation.job == job.id ||
      entitlement_.Precedes(job, *view_.snapshot().Find(reservation.job)))
    return false;
  const TimeMs whole = whole_at_.at(reservation.job);
  return whole == kNever || ends > whole;
}

int Reservations::NotBinding(const Job& job) {
  if (none()) return 0;
  const TimeMs ends = EndIfStarted(job, view_.snapshot().now, last_whole_at_);
  std::vector<JobId> set;
  for (const Reservation& reservation : all_)
    if (!Binds(reservation, job, ends)) set.push_back(reservation.job);
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
    if (owner != without) view_.Reserve(Each(*view_.snapshot().Find(owner)), *Of(owner));
}

void Reservations::MoveTo(const Job& owner, const Placement& placement) {
  for (Reservation& reservation : all_)
    if (reservation.job == owner.id) reservation.placement = placement;
}

void Reservations::GiveUp(const Job& owner) {
  reserved_ -= SizeOf(owner);
  std::erase_if(all_, [&](const Reservation& each) { return each.job == owner.id; });
}

bool Reservations::HasRoomFor(const Job& job) const {
  return all_.empty() || static_cast<double>(reserved_ + SizeOf(job)) <= most_;
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

void Reservations::Add(const Job& job, const Quota& quota, const Occupants& occupants,
                       const Preemption& preemption, const Preemptor& preemptor) {
  if (!HasRoomFor(job)) return;
  const Snapshot& snapshot = view_.snapshot();
  const VictimRules rules{
      .may_stop = [](const Job&, const Quota&) { return true; },
      .cost = [&](int index, const Quota& then) -> double {
        const Job& blocker = snapshot.jobs[index];
        if (blocker.backfilled || preemption.rights().ToStop(preemptor, blocker, then)) return 0;
        return static_cast<double>(Each(blocker)[view_.packing_kind()] *
                                   NumWorkers(blocker.placement)) *
               static_cast<double>(RemainingMs(blocker, snapshot.now, 0.5));
      }};
  std::optional<VictimPlan> plan = FindVictims(view_, quota, occupants, job, rules);
  if (!plan || OneEndServes(snapshot, job, *plan) || !CostsNoMoreThanItsShare(job, plan->placement))
    return;
  view_.Reserve(Each(job), plan->placement);
  reserved_ += SizeOf(job);
  all_.push_back({job.id, std::move(plan->placement)});
  whole_at_[job.id] = snapshot.now;  // nobody else is considered in this cycle
}

}  // namespace renzan::cluster
