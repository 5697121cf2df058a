#include "renzan/cluster/core/order/entitlement.h"

#include <algorithm>
#include <optional>

#include "renzan/cluster/core/order/room_by_right.h"

namespace renzan::cluster {
namespace {

// Whether `amount` fits into `left`, in these kinds.
bool Fits(const Resources& amount, const Resources& left, const std::vector<int>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](int kind) { return amount[kind] <= left[kind]; });
}

// Whether others can take the workers above its minimum, once it runs.
bool CanShrink(const Job& job) { return SavesWhenStopped(job) && job.preemptible; }

}  // namespace

Entitlement::Entitlement(const ClusterView& view, const Quota& quota, const Occupants& occupants,
                         Ranks& ranks, const std::function<bool(const Job&)>& may_start)
    : ranks_(ranks), snapshot_(view.snapshot()), kinds_(GuaranteedKinds(view.snapshot())) {
  const Snapshot& snapshot = view.snapshot();
  if (kinds_.empty()) return;
  std::vector<Places> queues(snapshot.queues.size());
  for (size_t at = 0; at < snapshot.jobs.size(); ++at) {
    const Job& job = snapshot.jobs[at];
    if (job.state == JobState::kStopping || job.quota_exempt) continue;
    const bool pending = job.state == JobState::kPending;
    const auto& [standing, right, use, service] = ranks.Of(job);
    queues[job.queue].emplace_back(pending || !IsFixed(job), right,
                                   pending || SavesWhenStopped(job), use, service, pending, at);
  }
  for (Places& places : queues) std::sort(places.begin(), places.end());
  for (const Queue& queue : snapshot.queues) left_.push_back(queue.guaranteed);
  std::optional<RoomByRight> room;
  const auto take_room = [&](const Job& job) {
    if (!room) room.emplace(view, quota, occupants, ranks, StandingOfRunning(queues));
    return room->Take(job);
  };
  for (size_t queue = 0; queue < queues.size(); ++queue)
    Entitle(static_cast<int>(queue), queues[queue], ranks, may_start, take_room);
  for (const int parent : ParentsUpwards(snapshot)) {
    TakeOutOfParent(parent, left_);
    const auto borrows = [&](int at) {
      return ranks.Of(snapshot.jobs[at]).standing == Standing::kBorrows;
    };
    Entitle(parent, Below(parent, queues, borrows), ranks, may_start, take_room);
  }
}

// What is left of a guarantee goes to these jobs, one after the other.
void Entitlement::Entitle(int queue, const Places& places, Ranks& ranks,
                          const std::function<bool(const Job&)>& may_start,
                          const std::function<bool(const Job&)>& take_room) {
  Resources& left = left_[queue];
  std::vector<int> claims;  // pending jobs within quota
  const auto drop_idle_claims = [&] {
    for (const int at : claims)
      if (const Job& job = snapshot_.jobs[at]; !take_room(job)) left += UseOf(job);
    claims.clear();
  };
  for (const auto& place : places) {
    const int at = std::get<int>(place);
    const Job& job = snapshot_.jobs[at];
    const bool pending = job.state == JobState::kPending;
    const Resources amount = UseOf(job);
    if (!Fits(amount, snapshot_.queues[queue].guaranteed, kinds_) || (pending && !may_start(job)))
      continue;
    if (!Fits(amount, left, kinds_)) drop_idle_claims();
    if (!Fits(amount, left, kinds_)) continue;
    ranks.SetStanding(job, StandingWithin(snapshot_, job.queue, queue));
    left -= amount;
    if (pending) claims.push_back(at);
  }
  // What they do not use is there for the parent's other queues, too.
  if (snapshot_.queues[queue].parent) drop_idle_claims();
}

// What the queues below the parent use of their guarantees is part of its own.
void Entitlement::TakeOutOfParent(int parent, std::vector<Resources>& left) const {
  for (size_t queue = 0; queue < left.size(); ++queue)
    if (snapshot_.queues[queue].parent == parent)
      left[parent] -= snapshot_.queues[queue].guaranteed - left[queue];
}

// In their order, the jobs of queues below the parent that are within no quota of these or of
// parents between them.
Entitlement::Places Entitlement::Below(int parent, const std::vector<Places>& queues,
                                       const std::function<bool(int)>& borrows) const {
  std::vector<Places> below;
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    if (!IsWithin(snapshot_, static_cast<int>(queue), parent)) continue;
    Places& its = below.emplace_back();
    for (const auto& place : queues[queue])
      if (borrows(std::get<int>(place))) its.push_back(place);
  }
  return Merged(below);
}

// The places of sorted queues in one sequence. Use is only compared within a queue: its jobs
// exchange the turns that they have without it.
Entitlement::Places Entitlement::Merged(const std::vector<Places>& queues) {
  std::vector<std::pair<Places::value_type, Places::value_type>> turns;
  for (const Places& places : queues) {
    Places without_use = places;
    for (auto& place : without_use) std::get<Use>(place) = {};
    std::sort(without_use.begin(), without_use.end());
    for (size_t at = 0; at < places.size(); ++at) turns.emplace_back(without_use[at], places[at]);
  }
  std::sort(turns.begin(), turns.end());
  Places merged;
  for (const auto& [turn, place] : turns) merged.push_back(place);
  return merged;
}

// What the job uses of its queue's guaranteed quota.
Resources Entitlement::UseOf(const Job& job) const {
  const int workers =
      job.state == JobState::kPending || CanShrink(job)
          ? job.min_workers
          : NumWorkers(job.state == JobState::kResizing ? job.target : job.placement);
  return snapshot_.worker_requests[job.request].per_worker * workers;
}

// The standing that running jobs would have if none were pending, by position.
std::vector<Standing> Entitlement::StandingOfRunning(const std::vector<Places>& queues) const {
  std::vector<Standing> standings(snapshot_.jobs.size(), Standing::kBorrows);
  std::vector<Resources> left;
  for (const Queue& queue : snapshot_.queues) left.push_back(queue.guaranteed);
  const auto fill = [&](int queue, const Places& places) {
    for (const auto& place : places) {
      const int at = std::get<int>(place);
      const Job& job = snapshot_.jobs[at];
      if (job.state == JobState::kPending || !Fits(UseOf(job), left[queue], kinds_)) continue;
      standings[at] = StandingWithin(snapshot_, job.queue, queue);
      left[queue] -= UseOf(job);
    }
  };
  for (size_t queue = 0; queue < queues.size(); ++queue)
    fill(static_cast<int>(queue), queues[queue]);
  const auto borrows = [&](int at) { return standings[at] == Standing::kBorrows; };
  for (const int parent : ParentsUpwards(snapshot_)) {
    TakeOutOfParent(parent, left);
    fill(parent, Below(parent, queues, borrows));
  }
  return standings;
}

// The queue, or the parent above it, within whose quota the job is.
int Entitlement::WithinWhich(const Job& job) const {
  int queue = job.queue;
  while (StandingWithin(snapshot_, job.queue, queue) != ranks_.Of(job).standing)
    queue = *snapshot_.queues[queue].parent;
  return queue;
}

bool Entitlement::MayLoseQuotaByGrowing(const Job& job) const {
  const Standing standing = ranks_.Of(job).standing;
  return standing != Standing::kUnbound && standing != Standing::kBorrows && !CanShrink(job);
}

int Entitlement::MoreWorkers(const Job& job, int workers) const {
  const int most = job.max_workers - workers;
  if (!MayLoseQuotaByGrowing(job)) return most;
  const Resources& each = snapshot_.worker_requests[job.request].per_worker;
  int more = 0;
  while (more < most && Fits(each * (more + 1), left_[WithinWhich(job)], kinds_)) ++more;
  return more;
}

void Entitlement::Take(const Job& job, int more) {
  if (!MayLoseQuotaByGrowing(job)) return;
  const Resources taken = snapshot_.worker_requests[job.request].per_worker * more;
  for (const int above : LineageOf(snapshot_, WithinWhich(job))) left_[above] -= taken;
}

}  // namespace renzan::cluster
