// Which job may preempt which. The decisions do not say in which order a cycle made them: where a
// rule depends on that order, a stop is accepted if it is right in some order.
//
// A queue's use counts its running jobs and its resizing jobs (with their target), not stopping
// ones. To tell what a queue borrows, jobs that start or are pipelined count too.

#include <algorithm>
#include <array>
#include <set>

#include "renzan/cluster/core/order/gittins.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

// What a stop or a shrink releases.
struct Victim {
  const Job* job;
  Resources amount;
  JobId on_behalf_of;
  const Stop* stop;  // null: a shrink
};

class Rights {
 public:
  explicit Rights(CheckContext& context)
      : context_(context),
        snapshot_(context.snapshot),
        guaranteed_(GuaranteedToAny(context.snapshot)) {
    for (const Stop& stop : context.decisions.stops) {
      const Job& job = *snapshot_.Find(stop.job);
      victims_.push_back({&job, Of(snapshot_, job, CountedWorkers(job)), stop.on_behalf_of, &stop});
      preemptors_.insert(stop.on_behalf_of);
    }
    for (const Resize& resize : context.decisions.resizes) {
      const Job& job = *snapshot_.Find(resize.job);
      const int fewer = NumWorkers(job.placement) - NumWorkers(resize.target);
      if (fewer > 0) {
        victims_.push_back({&job, Of(snapshot_, job, fewer), resize.on_behalf_of, nullptr});
        preemptors_.insert(resize.on_behalf_of);
      }
      if (fewer < 0 && resize.on_behalf_of != 0)
        context.ReportFor(resize.on_behalf_of, "job {} grows on behalf of job {}", job.id,
                          resize.on_behalf_of);
      if (fewer == 0) CheckMove(job, resize);
    }
  }

  void Check() {
    std::map<int, std::vector<const Victim*>> borrowed;  // by borrowing queue
    for (const Victim& victim : victims_) {
      if (victim.on_behalf_of == 0) {
        CheckWithoutPreemptor(victim);
        continue;
      }
      const Job* preemptor = snapshot_.Find(victim.on_behalf_of);
      if (preemptor == nullptr || !IsPipelined(preemptor->id)) {
        context_.ReportFor(victim.on_behalf_of, "job {} yields to job {}, which is not pipelined",
                           victim.job->id, victim.on_behalf_of);
      } else if (!victim.job->preemptible) {
        context_.ReportFor(preemptor->id, "job {} yields to job {}, but is not preemptible",
                           victim.job->id, preemptor->id);
      } else if (!MayRegardlessOfBorrowing(victim, *preemptor) &&
                 !MayIfQueueBorrows(victim, *preemptor)) {
        context_.ReportConsequence(preemptor->id, "job {} ({}) may not stop or shrink job {} ({})",
                                   preemptor->id, Describe(*preemptor), victim.job->id,
                                   victim.stop == nullptr ? "shrink" : NameOf(victim.stop->reason));
      } else if (!MayRegardlessOfBorrowing(victim, *preemptor)) {
        borrowed[WhatCounts(snapshot_, victim.job->queue, preemptor->queue)].push_back(&victim);
      }
    }
    for (const auto& [queue, victims] : borrowed) CheckBorrowed(queue, victims);
  }

 private:
  // A job moves off a draining node, or to make room for one that does not have lower priority.
  void CheckMove(const Job& job, const Resize& resize) {
    if (resize.on_behalf_of == 0) {
      if (!IsOnDrainingNode(snapshot_, job))
        context_.ReportFor(job.id, "job {} is moved, although none of its nodes is draining",
                           job.id);
      return;
    }
    const Job* gang = snapshot_.Find(resize.on_behalf_of);
    if (gang == nullptr || !IsPipelined(gang->id))
      context_.ReportFor(resize.on_behalf_of, "job {} is moved for job {}, which is not pipelined",
                         job.id, resize.on_behalf_of);
    else if (!job.preemptible || job.priority > gang->priority)
      context_.ReportFor(gang->id, "job {} may not be moved for job {}", job.id, gang->id);
  }

  std::string Describe(const Job& job) const {
    return fmt::format("queue {}, priority {}", snapshot_.queues[job.queue].name, job.priority);
  }

  void CheckWithoutPreemptor(const Victim& victim) {
    const Job& job = *victim.job;
    const bool leaves = IsOnDrainingNode(snapshot_, job);
    const bool over = Saves(job) && UserIsOverCap(job);
    if (victim.stop == nullptr) {
      if (!leaves && !over) context_.ReportFor(job.id, "job {} is shrunk for no reason", job.id);
    } else if (victim.stop->reason == StopReason::kNodeLeaving) {
      if (!leaves)
        context_.ReportFor(job.id, "job {} is stopped, although none of its nodes is draining",
                           job.id);
      if (leaves && !Saves(job) && !IsOnNodeThatGoesAway(snapshot_, job))
        context_.ReportFor(
            job.id, "job {} cannot save its work, but is stopped for a drain without a deadline",
            job.id);
    } else if (victim.stop->reason == StopReason::kOverCap) {
      if (!over)
        context_.ReportFor(
            job.id, "job {} is stopped for a cap that holds without that, or does not checkpoint",
            job.id);
    } else {
      context_.ReportFor(job.id, "job {} is stopped ({}) without a preemptor", job.id,
                         NameOf(victim.stop->reason));
    }
  }

  // Whether the user would still be over the cap if all others stopped for the cap had stopped.
  bool UserIsOverCap(const Job& job) const {
    int64_t in_use = 0;
    for (const Job& other : snapshot_.jobs)
      if (other.user == job.user && !other.quota_exempt)
        in_use += Of(snapshot_, other, CountedWorkers(other)).gpu();
    int64_t least = 0;  // the largest amount released by one of them
    for (const Victim& victim : victims_) {
      if (victim.job->user != job.user || victim.on_behalf_of != 0) continue;
      if (victim.stop != nullptr && victim.stop->reason != StopReason::kOverCap) continue;
      in_use -= victim.amount.gpu();
      least = std::max(least, victim.amount.gpu());
    }
    return in_use + least > snapshot_.users[job.user].CapAt(snapshot_.now);
  }

  // Workers above an elastic job's minimum also yield to equal priority.
  static bool YieldsByPriority(const Victim& victim, const Job& preemptor) {
    return victim.job->priority < preemptor.priority + (victim.stop == nullptr);
  }

  // For less service only a job that saves its work yields, to one that has got less, or is
  // expected to need less. Levels are the scheduler's own: whatever they are, a lower one means
  // less service.
  bool YieldsByService(const Victim& victim, const Job& preemptor) const {
    return victim.stop != nullptr && victim.stop->reason == StopReason::kTimeShared &&
           victim.job->priority == preemptor.priority && Saves(*victim.job) &&
           HasLessService(preemptor, *victim.job) && !HasUsedMore(preemptor, *victim.job);
  }

  // Whether the job's user has used clearly more of the queue than the other's, if both are in one
  // with fair share.
  bool HasUsedMore(const Job& job, const Job& other) const {
    if (job.queue != other.queue || !snapshot_.queues[job.queue].fair_share) return false;
    const auto used_by = [&](const Job& one) {
      double seconds = 0;
      for (const UsedLately& used : snapshot_.queues[job.queue].fair_share->used)
        if (used.user == one.user) seconds = used.seconds;
      return seconds;
    };
    double most = 0;
    for (const Job& one : snapshot_.jobs)
      if (one.queue == job.queue) most = std::max(most, used_by(one));
    constexpr double kTooLittle = 1e-3;  // of the most, to make a difference
    return used_by(job) > 2 * used_by(other) && used_by(job) > kTooLittle * most;
  }

  bool HasLessService(const Job& job, const Job& other) const {
    const TimeMs mine = ServiceOf(job, snapshot_.now), others = ServiceOf(other, snapshot_.now);
    return mine < others || GittinsService(job.run_time, ProgressOf(job, snapshot_.now)) <
                                GittinsService(other.run_time, ProgressOf(other, snapshot_.now));
  }

  bool HasReservedNodesOf(const Job& victim, const Job& preemptor) const {
    return std::any_of(snapshot_.reservations.begin(), snapshot_.reservations.end(),
                       [&](const Reservation& reservation) {
                         return reservation.job == preemptor.id &&
                                Overlap(reservation.placement, victim.placement);
                       });
  }

  // The rules that do not depend on borrowing.
  bool MayRegardlessOfBorrowing(const Victim& victim, const Job& preemptor) const {
    const bool shrink = victim.stop == nullptr;
    const StopReason reason = shrink ? StopReason::kPreempted : victim.stop->reason;
    if ((shrink || reason == StopReason::kGrandChallenge) && preemptor.quota_exempt) return true;
    if ((shrink || reason == StopReason::kReservation) && victim.job->backfilled &&
        HasReservedNodesOf(*victim.job, preemptor))
      return true;
    if (victim.job->queue != preemptor.queue) return false;
    return ((shrink || reason == StopReason::kPreempted) && YieldsByPriority(victim, preemptor)) ||
           YieldsByService(victim, preemptor);
  }

  // Between queues, or their parents if these differ: the preemptor's queue reclaims its quota, or
  // the preemptor's priority is higher or its service less. CheckBorrowed checks that the victim's
  // queue borrows.
  bool MayIfQueueBorrows(const Victim& victim, const Job& preemptor) const {
    if (victim.job->queue == preemptor.queue) return false;
    const bool shrink = victim.stop == nullptr;
    const bool reclaim = shrink || victim.stop->reason == StopReason::kReclaimed;
    const bool preempt = shrink || victim.stop->reason == StopReason::kPreempted;
    const int side = WhatCounts(snapshot_, preemptor.queue, victim.job->queue);
    bool stays = false;
    for (int at = preemptor.queue; reclaim && !stays; at = *snapshot_.queues[at].parent) {
      stays = StaysWithinGuarantee(preemptor, at);
      if (at == side) break;
    }
    return (reclaim && stays) || (preempt && YieldsByPriority(victim, preemptor)) ||
           YieldsByService(victim, preemptor);
  }

  bool ExceedsGuarantee(int queue, const Resources& in_use) const {
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (guaranteed_[kind] && in_use[kind] > snapshot_.queues[queue].guaranteed[kind]) return true;
    return false;
  }

  bool CountsFor(const Job& job, int queue) const {
    return !job.quota_exempt && IsPartOf(snapshot_, job.queue, queue);
  }

  Resources InUse(int queue) const {
    Resources in_use;
    for (const Job& job : snapshot_.jobs)
      if (CountsFor(job, queue)) in_use += Of(snapshot_, job, CountedWorkers(job));
    return in_use;
  }

  bool IsPipelined(JobId id) const {
    const auto wait = context_.waits.find(id);
    return wait != context_.waits.end() && (wait->second->reason == WaitReason::kPipelined ||
                                            wait->second->reason == WaitReason::kNodesBooting);
  }

  // Whether the queue, the preemptor's or its parent, stays within its guaranteed quota with the
  // preemptor at its minimum, counting earlier preemptors of the queue and not its victims. Jobs
  // that start in the same cycle are left out: it is unknown whether they were considered earlier.
  bool StaysWithinGuarantee(const Job& preemptor, int queue) const {
    Resources in_use = InUse(queue);
    for (const Victim& victim : victims_)
      if (CountsFor(*victim.job, queue)) in_use -= victim.amount;
    for (const Wait& wait : context_.decisions.waits) {
      if (wait.job == preemptor.id) break;
      const Job& job = *snapshot_.Find(wait.job);
      if (CountsFor(job, queue) && preemptors_.count(job.id) > 0)
        in_use += Of(snapshot_, job, job.min_workers);
    }
    return !ExceedsGuarantee(queue, in_use + Of(snapshot_, preemptor, preemptor.min_workers));
  }

  // Jobs may only be reclaimed from a queue while it borrows, so it must still have been borrowing
  // before the last one. Some order is right if any of the victims can have been the last.
  void CheckBorrowed(int queue, const std::vector<const Victim*>& victims) {
    // Without guaranteed quotas everything counts as borrowed.
    if (std::none_of(guaranteed_.begin(), guaranteed_.end(), [](bool is) { return is; })) return;
    Resources in_use = InUse(queue);
    for (const Job& job : snapshot_.jobs) {
      if (!CountsFor(job, queue)) continue;
      if (const auto start = context_.starts.find(job.id); start != context_.starts.end())
        in_use += Of(snapshot_, job, NumWorkers(start->second->placement));
      else if (IsPipelined(job.id))
        in_use += Of(snapshot_, job, job.min_workers);
    }
    for (const Victim* victim : victims) in_use -= victim->amount;
    const bool right = std::any_of(victims.begin(), victims.end(), [&](const Victim* last) {
      return ExceedsGuarantee(queue, in_use + last->amount);
    });
    if (right) return;
    std::string jobs;
    for (const Victim* victim : victims) jobs += fmt::format(" {}", victim->job->id);
    context_.ReportConsequence(
        victims.back()->on_behalf_of,
        "queue {} does not borrow enough for all of these jobs to be preempted:{}",
        snapshot_.queues[queue].name, jobs);
  }

  CheckContext& context_;
  const Snapshot& snapshot_;
  std::array<bool, kMaxResources> guaranteed_;  // kinds that some queue is guaranteed
  std::vector<Victim> victims_;
  std::set<JobId> preemptors_;
};

}  // namespace

void CheckRights(CheckContext& context) { Rights(context).Check(); }

}  // namespace renzan::cluster::check
