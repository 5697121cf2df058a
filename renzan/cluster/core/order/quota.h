#pragma once

// Tracks what queues and users have in use during a scheduling cycle, and checks queue quotas and
// user caps. Not thread-safe.

#include <optional>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// The kinds of resources that some queue is guaranteed. Only these can be borrowed and reclaimed; a
// limit concerns no queue but its own.
std::vector<int> GuaranteedKinds(const Snapshot& snapshot);

// Whether the job may only use its queue's guaranteed quota: it is not preemptible, and not exempt
// from quotas.
bool IsFixed(const Job& job);

// From whom a job may reclaim, by what is in use now: from all beside whom `within`, or a parent
// above it, counts for its queue (SideOf()). `within` is the lowest, the queue itself or one above
// it, in whose guaranteed quota the job is and which stays so with its minimum.
struct Reclaims {
  int within = -1;  // nobody
  auto operator<=>(const Reclaims&) const = default;
};

class Quota {
 public:
  explicit Quota(const ClusterView& view);

  void Add(const Job& job, int workers);
  void Remove(const Job& job, int workers);

  // What forbids `workers` more workers of the job: its queue's limit, its user's cap, or, for a
  // job that is not preemptible, its queue's guaranteed quota. Such jobs never borrow, because what
  // they borrow could not be reclaimed.
  std::optional<WaitReason> Forbids(const Job& job, int workers) const;
  // How many more workers are allowed, at most `wanted`.
  int MostAllowed(const Job& job, int wanted) const;

  // Whether any queue has a guaranteed quota.
  bool guarantees() const { return !guaranteed_kinds_.empty(); }
  // Whether the queue uses more than its guaranteed quota.
  bool Borrows(int queue) const { return Exceeds(queue, {}); }
  // Whether the queue, the job's or one above it, stays within its guaranteed quota with `workers`
  // more workers of the job.
  bool WithinGuarantee(int queue, const Job& job, int workers) const;
  // Whether the queue, the job's or one above it, still uses all of its guaranteed quota without
  // `workers_less` of the workers.
  bool HasGuarantee(int queue, const Job& job, int workers_less) const;
  // The queue's dominant share: use divided by guaranteed quota (by the cluster's total where
  // nothing is guaranteed), of the kind where this is largest. Borrowers are above 1.
  double Share(int queue) const;

  // Changes with every Add() and Remove().
  uint64_t version() const { return version_; }
  const Resources& used(int queue) const { return used_[queue]; }
  const Resources& used_by_fixed(int queue) const { return fixed_[queue]; }
  int64_t gpus_of(int user) const { return gpus_[user]; }

 private:
  bool Exceeds(int queue, const Resources& more) const;

  const Snapshot* snapshot_;
  Resources total_;
  uint64_t version_ = 0;
  std::vector<int> guaranteed_kinds_;
  std::vector<Resources> used_;       // by queue; a parent's queues count for it
  std::vector<Resources> fixed_;      // the part used by jobs that are not preemptible
  std::vector<int64_t> gpus_, caps_;  // by user
};

}  // namespace renzan::cluster
