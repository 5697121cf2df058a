#pragma once

// By what a job goes before others: one value per job, computed once per cycle. Whatever compares
// two jobs asks here. The terms, in their sequence:
//
//   1. Standing. Unbound by quotas: a grand challenge, for which everybody yields. Between queues:
//      within its queue's guaranteed quota (entitlement.h), within that of a parent above the
//      queue, or beyond all.
//   2. Right: higher priority. Jobs with less of it yield, whatever that costs them.
//   3. Use: of a queue with fair share, its user has used less lately (fair_share.h): only between
//      jobs of the queue. No job yields for it.
//   4. Service: less so far (service_levels.h). For it only jobs yield that lose little by that.
//
// A job is only preempted for one of higher rank. Ranks do not depend on the cycle's decisions, so
// a chain of preemptions always climbs in rank, also without Use, and ends. With time a job's rank
// only falls, once per level of service; Use goes up and down. What changes within a cycle (room
// that was made, overdue jobs, the queues' shares) comes in between in the pending queue
// (pending_queue.h).
//
// A new term is a member of Right or of Service, with its name in Terms() and WhyAhead(): keys of
// interchangeable jobs, and all comparisons, follow from these types. One that changes while
// nothing else does also needs a cycle when it does: ServiceLevels::NextChange(), FairShares.

#include <compare>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/core/order/queue_tree.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// The lesser value goes first, of all four types.
struct Right {
  int priority = 0;

  bool operator==(const Right&) const = default;
  auto operator<=>(const Right& other) const { return other.priority <=> priority; }
};

struct Use {
  int level = 0;  // 0: its queue has no fair share

  auto operator<=>(const Use&) const = default;
};

struct Service {
  int level = 0;

  auto operator<=>(const Service&) const = default;
};

// Where a job stands with the quotas, the best first: not bound by them (a grand challenge), within
// its queue's guaranteed quota, within that of a parent above the queue, or beyond all. Parents
// count from the top, those below most others first. So one value per job compares jobs of branches
// of any length: who reclaims is within the quota of something below the lowest parent of both
// queues, and the victim at most within that parent's.
enum class Standing { kUnbound, kWithinQuota, kBorrows = Queue::kMostLevels + 1 };
// Of the queue's jobs within the guarantee of `above`: the queue, or one above it.
Standing StandingWithin(const Snapshot& snapshot, int queue, int above);

// Jobs with equal ranks are interchangeable, as far as the order is concerned.
struct Rank {
  Standing standing = Standing::kBorrows;
  Right right;
  Use use;
  Service service;

  auto operator<=>(const Rank&) const = default;
  // All before use: of equal ones, an overdue job goes first.
  std::pair<Standing, Right> Class() const { return {standing, right}; }
  // What counts beside jobs of other queues.
  Rank AmongQueues() const { return {.standing = standing, .right = right, .service = service}; }
  size_t Hash() const {
    return static_cast<size_t>(right.priority) << 32 ^ static_cast<size_t>(use.level) << 16 ^
           static_cast<size_t>(service.level) << 1 ^ static_cast<size_t>(standing);
  }
  // What a job's own facts contribute, by name.
  std::vector<std::pair<const char*, int>> Terms() const;
};

// Why the first goes before the second, of jobs of one queue: "of higher priority". They differ.
const char* WhyAhead(const Rank& first, const Rank& second);

class Ranks {
 public:
  // At first, jobs that quotas do not bind are kUnbound, and all others count as borrowing.
  Ranks(const Snapshot& snapshot, const ServiceLevelOptions& options);

  const Rank& Of(const Job& job) const { return ranks_[&job - first_]; }
  bool IsUnbound(const Job& job) const { return Of(job).standing == Standing::kUnbound; }
  bool WithinQuota(const Job& job) const { return Of(job).standing <= Standing::kWithinQuota; }
  void SetStanding(const Job& job, Standing standing) { ranks_[&job - first_].standing = standing; }
  // Whether the job is within the quota that counts against the other (SideOf()).
  bool WithinQuotaAgainst(const Job& job, const Job& other) const {
    return Of(job).standing <= CountsAgainst(job, other);
  }
  Standing CountsAgainst(const Job& job, const Job& other) const {
    return StandingWithin(snapshot_, job.queue, SideOf(snapshot_, job.queue, other.queue));
  }

  bool Outranks(const Job& a, const Job& b) const {
    return a.queue == b.queue ? Of(a) < Of(b) : Of(a).AmongQueues() < Of(b).AmongQueues();
  }
  // Whether it makes a difference to which queue the job belongs, even if none is guaranteed
  // anything.
  bool DependsOnQueue(const Job& job) const { return Of(job).use.level > 0; }
  // Whether a goes before b by right, however much service they have got: unbound by quotas, by its
  // queue's guarantee or its priority; within a queue by priority only. So b's reservation does not
  // keep a waiting.
  bool Precedes(const Job& a, const Job& b) const {
    if (IsUnbound(a) != IsUnbound(b)) return IsUnbound(a);
    if (a.queue != b.queue && WithinQuotaAgainst(a, b) != WithinQuotaAgainst(b, a))
      return WithinQuotaAgainst(a, b);
    return Of(a).right < Of(b).right;
  }
  // Whether b has no more right than a: then it gives a room where that costs it little, workers
  // above its minimum or a move.
  bool IsNotBelow(const Job& a, const Job& b) const { return Of(a).right <= Of(b).right; }
  // Why the job may stop a running one of its queue, or one that only borrows; nothing if it may
  // not.
  std::optional<StopReason> WhyItMayStop(const Job& job, const Job& victim) const;

  const ServiceLevels& levels() const { return levels_; }
  const FairShares& fair_shares() const { return fair_shares_; }
  const Snapshot& snapshot() const { return snapshot_; }

 private:
  const ServiceLevels levels_;
  const FairShares fair_shares_;
  const Snapshot& snapshot_;
  const Job* first_;
  std::vector<Rank> ranks_;  // by position in Snapshot::jobs
};

Reclaims ReclaimsOf(const Job& job, const Ranks& ranks, const Quota& quota);
// Whether these are rights against a job of another queue.
bool IsReclaim(const Snapshot& snapshot, const Reclaims& reclaims, const Job& job,
               const Job& victim);

}  // namespace renzan::cluster
