#pragma once

// May a job have this much, by the quota of its queue and the cap of its user? Keeps count of what
// queues and users have while a cycle decides. Not thread-safe.

#include <optional>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// The kinds of resources that some queue guarantees or limits.
std::vector<int> GovernedKinds(const Snapshot& snapshot);

// Nobody may stop it, and it is not above quotas: it may only use what its queue is guaranteed.
bool IsFixed(const Job& job);

class Quota {
 public:
  // What the cluster has in sum is the measure of shares where nothing is guaranteed.
  explicit Quota(const ClusterView& view);

  // The job's workers count from now on, or no more.
  void Add(const Job& job, int workers);
  void Remove(const Job& job, int workers);

  // What forbids so many workers of the job more: its queue's limit, its user's cap, or, for a
  // job that nobody may preempt, what its queue is guaranteed. Such jobs never borrow, because what
  // they borrowed nobody could take back.
  std::optional<WaitReason> Forbids(const Job& job, int workers) const;
  // The most workers more that are allowed, at most `wanted`.
  int MostAllowed(const Job& job, int wanted) const;

  // Some queue is guaranteed something or limited.
  bool governs() const { return !governed_.empty(); }
  // The queue has more than it is guaranteed, of a kind that quota governs.
  bool Borrows(int queue) const { return Exceeds(queue, {}); }
  // With so many workers of the job more its queue still has no more than it is guaranteed.
  bool WithinGuarantee(const Job& job, int workers) const;
  // With so many workers of the job less its queue still has all that it is guaranteed.
  bool HasGuarantee(const Job& job, int workers_less) const;
  // How well a queue is served: what it has over what it is guaranteed (over the cluster, where it
  // is guaranteed nothing), of the kind of which this is most. Borrowers are above 1.
  double Share(int queue) const;

  // Changes whenever something is added or removed.
  uint64_t version() const { return version_; }
  const Resources& used(int queue) const { return used_[queue]; }
  const Resources& used_by_fixed(int queue) const { return fixed_[queue]; }
  int64_t gpus_of(int user) const { return gpus_[user]; }

 private:
  bool Exceeds(int queue, const Resources& more) const;

  const Snapshot* snapshot_;
  Resources total_;
  uint64_t version_ = 0;
  std::vector<int> governed_;
  std::vector<Resources> used_;       // by queue
  std::vector<Resources> fixed_;      // of that, by jobs that are not preemptible
  std::vector<int64_t> gpus_, caps_;  // by user
};

}  // namespace renzan::cluster
