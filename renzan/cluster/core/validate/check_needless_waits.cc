// No job waits for room that is its by right: what is free and not kept for a job that goes before
// it, and what queues without any guarantee have borrowed, or parents that count in their place, if
// the job is within its own queue's guarantee. Nor does a job wait without a claim for those of
// lower priority that nobody may stop.
//
// Says only what is certain. A job may go before it for reasons that this check does not follow
// (levels of service, jobs that move); where one might, the job is not examined.

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "renzan/cluster/core/validate/check.h"
#include "renzan/cluster/core/validate/packing.h"

namespace renzan::cluster::check {
namespace {

class NeedlessWaits {
 public:
  explicit NeedlessWaits(CheckContext& context)
      : context_(context),
        snapshot_(context.snapshot),
        guaranteed_(GuaranteedToAny(context.snapshot)),
        guarantees_(std::ranges::any_of(guaranteed_, [](bool is) { return is; })),
        used_(snapshot_.queues.size()),
        gpus_(snapshot_.users.size()) {
    const auto add = [&](const Job& job, int workers) {
      if (job.quota_exempt) return;
      const Resources amount = Of(snapshot_, job, workers);
      for (size_t queue = 0; queue < used_.size(); ++queue)
        if (IsPartOf(snapshot_, job.queue, static_cast<int>(queue))) used_[queue] += amount;
      gpus_[job.user] += amount.gpu();
    };
    for (const Job& job : snapshot_.jobs) {
      if (context.stops.contains(job.id)) continue;
      const auto start = context.starts.find(job.id);
      const auto resize = context.resizes.find(job.id);
      add(job, start != context.starts.end()     ? NumWorkers(start->second->placement)
               : resize != context.resizes.end() ? NumWorkers(resize->second->target)
                                                 : CountedWorkers(job));
    }
  }

  void Check() {
    // Room that others have been promised cannot be told from the decisions.
    for (const Wait& wait : context_.decisions.waits)
      if (wait.reason == WaitReason::kPipelined || wait.reason == WaitReason::kNodesBooting) return;
    for (const Wait& wait : context_.decisions.waits) {
      if (!IsForRoom(wait)) continue;
      const Job& job = *snapshot_.Find(wait.job);
      if (!job.preemptible || !QuotaAllows(job) || !CapAllowsBeforeStops(snapshot_, job)) continue;
      if (HasRoom(job))
        context_.ReportFor(job.id,
                           "job {} waits ({}), although it has a right to room that there is",
                           job.id, NameOf(wait.reason));
    }
    CheckClaimOfTheFirst();
  }

 private:
  static bool IsForRoom(const Wait& wait) {
    return wait.reason == WaitReason::kResources || wait.reason == WaitReason::kFragmented ||
           wait.reason == WaitReason::kReserved;
  }

  // If one pending job has higher priority than all others, and could run once jobs of lower
  // priority have ended that it may not stop, room is kept for it; unless it is next when any of
  // them ends. Jobs that start in this cycle are not waited for yet: room may have been made for
  // one in an earlier cycle, when another job was first.
  void CheckClaimOfTheFirst() {
    const Job* first = nullptr;
    bool alone = true;
    const Wait* its = nullptr;
    for (const Wait& wait : context_.decisions.waits) {
      const Job& job = *snapshot_.Find(wait.job);
      if (first != nullptr && job.priority == first->priority) alone = false;
      if (first != nullptr && job.priority <= first->priority) continue;
      first = &job;
      its = &wait;
      alone = true;
    }
    if (first == nullptr || !alone || guarantees_ || first->quota_exempt || !IsForRoom(*its) ||
        HasOne(context_.decisions.reservations, first->id) || MayFollowOne(*first))
      return;
    std::vector<Resources> room = FreeOnceAllHaveStopped();
    Release(room, [&](const Job& other) { return IsBelow(other, *first); });
    if (PackTogether(snapshot_, room, {{first, first->min_workers}}) == Packs::kYes)
      context_.ReportFor(first->id,
                         "job {} waits ({}) for jobs of lower priority, but no room is kept for it",
                         first->id, NameOf(its->reason));
  }

  static bool HasOne(const std::vector<Reservation>& reservations, JobId job) {
    return std::ranges::any_of(reservations,
                               [&](const Reservation& each) { return each.job == job; });
  }

  static bool IsBelow(const Job& other, const Job& job) {
    return other.priority < job.priority && !other.quota_exempt;
  }

  // Whether the end of one job might be all that it waits for.
  bool MayFollowOne(const Job& job) const {
    const Resources needs = Of(snapshot_, job, job.min_workers);
    return std::ranges::any_of(snapshot_.jobs, [&](const Job& other) {
      return IsBelow(other, job) && std::ranges::any_of(other.placement, [&](const Placed& placed) {
               return needs.FitsIn(Of(snapshot_, other, placed.workers));
             });
    });
  }

  bool QuotaAllows(const Job& job) const {
    const Resources more = Of(snapshot_, job, job.min_workers);
    const Resources& limit = snapshot_.queues[job.queue].limit;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (more[kind] > 0 && limit[kind] != kUnlimited &&
          used_[job.queue][kind] + more[kind] > limit[kind])
        return false;
    const int64_t cap = snapshot_.users[job.user].CapAt(snapshot_.now);
    return cap == kUnlimited || gpus_[job.user] + more.gpu() <= cap;
  }

  bool Exceeds(int queue, const Resources& use) const {
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (guaranteed_[kind] && use[kind] > snapshot_.queues[queue].guaranteed[kind]) return true;
    return false;
  }

  // Whether there certainly is room for the job.
  bool HasRoom(const Job& job) {
    const bool reserves =
        HasOne(snapshot_.reservations, job.id) || HasOne(context_.decisions.reservations, job.id);
    const auto [at, is_new] = has_room_.try_emplace(std::tuple(
        job.queue, job.priority, job.request, job.min_workers, reserves ? job.id : JobId{0}));
    if (is_new)
      at->second = PackTogether(snapshot_, RoomFor(job, IsWithinGuarantee(job.queue)),
                                {{&job, job.min_workers}}) == Packs::kYes;
    return at->second;
  }

  // Whether every pending job of the queue is within its guarantee, in whichever order: all of
  // those together that might find room, and those that will wait again once they have stopped.
  bool IsWithinGuarantee(int queue) {
    if (!guarantees_) return false;
    const auto [at, is_new] = within_.try_emplace(queue);
    if (!is_new) return at->second;
    Resources use = used_[queue];
    for (const Stop& stop : context_.decisions.stops)
      if (const Job& job = *snapshot_.Find(stop.job); job.queue == queue && !job.quota_exempt)
        use += Of(snapshot_, job, job.min_workers);
    for (const Wait& wait : context_.decisions.waits) {
      const Job& job = *snapshot_.Find(wait.job);
      if (job.queue == queue && wait.reason != WaitReason::kInfeasible &&
          wait.reason != WaitReason::kBackoff && MightFindRoom(job))
        use += Of(snapshot_, job, job.min_workers);
    }
    return at->second = !Exceeds(queue, use);
  }

  bool MightFindRoom(const Job& job) {
    const auto [at, is_new] =
        might_find_room_.try_emplace(std::tuple(job.queue, job.request, job.min_workers));
    if (is_new)
      at->second =
          PackTogether(snapshot_, MostRoomFor(job), {{&job, job.min_workers}}) != Packs::kNo;
    return at->second;
  }

  std::vector<Resources> FreeOnceAllHaveStopped() const {
    std::vector<Resources> free(snapshot_.nodes.size());
    const Held held = HeldAfterStops(context_);
    for (size_t node = 0; node < free.size(); ++node)
      if (TakesWork(snapshot_.nodes[node].state))
        free[node] = snapshot_.nodes[node].capacity - held[node];
    return free;
  }

  template <typename May>
  void Release(std::vector<Resources>& free, May may) const {
    for (const Job& job : snapshot_.jobs) {
      if (job.state != JobState::kRunning || context_.stops.contains(job.id) ||
          context_.resizes.contains(job.id) || !may(job))
        continue;
      for (const Placed& placed : job.placement)
        if (TakesWork(snapshot_.nodes[placed.node].state))
          free[placed.node] += Of(snapshot_, job, placed.workers);
    }
  }

  // If everything stops that might ever stop for this job. What others start now is part of it: it
  // may have claimed its queue's guarantee before they did, for this cycle.
  std::vector<Resources> MostRoomFor(const Job& job) const {
    std::vector<Resources> free = FreeOnceAllHaveStopped();
    for (const Start& start : context_.decisions.starts)
      for (const Placed& placed : start.placement)
        free[placed.node] += Of(snapshot_, *snapshot_.Find(start.job), placed.workers);
    Release(free, [&](const Job& other) {
      const int side = WhatCounts(snapshot_, other.queue, job.queue);
      return other.preemptible && (other.queue == job.queue || Exceeds(side, used_[side]));
    });
    return free;
  }

  // What is certainly its own.
  std::vector<Resources> RoomFor(const Job& job, bool within) const {
    std::vector<Resources> free = FreeOnceAllHaveStopped(), unreserved = free;
    Release(unreserved, [&](const Job& other) { return other.backfilled; });
    const auto keep = [&](const Reservation& each) {
      const Job* owner = snapshot_.Find(each.job);
      if (owner == nullptr || owner->id == job.id || GoesBefore(job, within, *owner)) return;
      for (const Placed& placed : each.placement)
        unreserved[placed.node] -= Of(snapshot_, *owner, placed.workers);
    };
    for (const Reservation& each : snapshot_.reservations) keep(each);
    for (const Reservation& each : context_.decisions.reservations)
      if (!HasOne(snapshot_.reservations, each.job)) keep(each);
    if (within) {
      const auto yields = [&](const Job& other) {
        return IsOnlyBorrowed(other, WhatCounts(snapshot_, other.queue, job.queue));
      };
      Release(free, yields);
      Release(unreserved, [&](const Job& other) { return !other.backfilled && yields(other); });
    }
    for (size_t node = 0; node < free.size(); ++node)
      for (int kind = 0; kind < kMaxResources; ++kind)
        free[node][kind] = std::min(free[node][kind], unreserved[node][kind]);
    return free;
  }

  // Whether the job certainly goes before the owner of a reservation.
  bool GoesBefore(const Job& job, bool within, const Job& owner) const {
    if (owner.quota_exempt) return false;
    if (owner.queue == job.queue || !guarantees_) return job.priority > owner.priority;
    return within && Exceeds(WhatCounts(snapshot_, owner.queue, job.queue),
                             Of(snapshot_, owner, owner.min_workers));
  }

  // Whether the job's queue, or the parent that counts in its place, is guaranteed nothing of what
  // the job uses.
  bool IsOnlyBorrowed(const Job& job, int side) const {
    if (!job.preemptible) return false;
    const Resources use = Of(snapshot_, job, NumWorkers(job.placement));
    const Resources& guaranteed = snapshot_.queues[side].guaranteed;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (guaranteed_[kind] && use[kind] > 0 && guaranteed[kind] == 0) return true;
    return false;
  }

  CheckContext& context_;
  const Snapshot& snapshot_;
  const std::array<bool, kMaxResources> guaranteed_;  // kinds that some queue is guaranteed
  const bool guarantees_;
  std::vector<Resources> used_;  // by queue, after this cycle; a parent's queues count for it
  std::vector<int64_t> gpus_;    // by user
  // What was found, by what it depends on: many jobs are alike.
  std::map<std::tuple<int, int, int, int, JobId>, bool> has_room_;
  std::map<int, bool> within_;
  std::map<std::tuple<int, int, int>, bool> might_find_room_;
};

}  // namespace

void CheckNeedlessWaits(CheckContext& context) { NeedlessWaits(context).Check(); }

}  // namespace renzan::cluster::check
