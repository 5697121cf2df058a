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

double RemainingMs(const Job& job, TimeMs now) {
  if (job.expected_end) return static_cast<double>(std::max<TimeMs>(*job.expected_end - now, 0));
  return static_cast<double>(LikelyRemaining(job.run_time, ServiceOf(job, now)));
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

Reservations::Reservations(ClusterView& view, double share, TimeMs overdue_after)
    : view_(view),
      overdue_after_(overdue_after),
      most_(static_cast<int64_t>(share * static_cast<double>(view.total()[view.packing_kind()]))) {
  for (const Reservation& reservation : view.snapshot().reservations) {
    if (!IsOfUse(reservation)) continue;
    const Job& owner = *view.snapshot().Find(reservation.job);
    all_.push_back(reservation);
    reserved_ += SizeOf(owner);
    view.Reserve(Each(owner), reservation.placement);
  }
}

bool Reservations::IsOfUse(const Reservation& reservation) const {
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

JobId Reservations::OwnerOf(const Placement& placement) const {
  for (const Reservation& reservation : all_)
    if (Overlap(reservation.placement, placement)) return reservation.job;
  return 0;
}

void Reservations::Lift(const Job& owner) { view_.Unreserve(Each(owner), *Of(owner.id)); }

void Reservations::Restore(const Job& owner) { view_.Reserve(Each(owner), *Of(owner.id)); }

void Reservations::MoveTo(const Job& owner, const Placement& placement) {
  for (Reservation& reservation : all_)
    if (reservation.job == owner.id) reservation.placement = placement;
}

void Reservations::GiveUp(const Job& owner) {
  reserved_ -= SizeOf(owner);
  std::erase_if(all_, [&](const Reservation& each) { return each.job == owner.id; });
}

bool Reservations::HasRoomFor(const Job& job) const {
  return all_.empty() || reserved_ + SizeOf(job) <= most_;
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
               RemainingMs(blocker, snapshot.now);
      }};
  std::optional<VictimPlan> plan = FindVictims(view_, quota, occupants, job, rules);
  if (!plan || OneEndServes(snapshot, job, *plan)) return;
  view_.Reserve(Each(job), plan->placement);
  reserved_ += SizeOf(job);
  all_.push_back({job.id, std::move(plan->placement)});
}

}  // namespace renzan::cluster
