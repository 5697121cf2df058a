#pragma once

// Which jobs are within their queue's guaranteed quota? Running jobs that are not preemptible come
// first: they never borrow, so what the queue has borrowed can always be reclaimed from its other
// jobs. Then higher priority first; then running jobs that would lose work if stopped, so that a
// reclaim costs work only where nothing else is borrowed; then less service, running jobs, earlier
// submission. A job that does not fit into the rest of the guaranteed quota is skipped. Jobs within
// quota cannot be preempted by other queues, and may reclaim what other queues have borrowed.
// Workers that can be taken back one by one do not count: they are borrowed. Nor does a pending job
// that could not find room, beside those before it, if all jobs stopped that may be stopped for it:
// it stays within quota, but others use that quota until there is room for it.
//
// A job's rank is (within quota, priority, -level of service), and a job is only preempted for one
// of higher rank. Being within quota and levels do not depend on the cycle's decisions, so a chain
// of preemptions always climbs in rank and ends. With time a job's rank only falls, once per level.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class Entitlement {
 public:
  // `may_start`: whether a pending job could start at all; a job that cannot uses no quota.
  Entitlement(const ClusterView& view, const Quota& quota, const Occupants& occupants,
              const ServiceLevels& levels, const std::function<bool(const Job&)>& may_start);

  bool WithinQuota(const Job& job) const { return within_quota_[&job - first_]; }
  // How many workers beyond `workers`, which already count, the job may get, up to its max_workers.
  // A job within quota that could not be shrunk again does not get so many that it, or another job
  // of its queue, would leave the quota: it would then be stopped for what it has borrowed.
  int MoreWorkers(const Job& job, int workers) const;
  // Records that it gets them.
  void Take(const Job& job, int more);
  // a's rank is above b's.
  bool Outranks(const Job& a, const Job& b) const {
    if (WithinQuota(a) != WithinQuota(b)) return WithinQuota(a);
    return a.priority != b.priority ? a.priority > b.priority : levels_->Of(a) < levels_->Of(b);
  }
  // Whether a goes before b by right, however much service they have got: by its queue's guarantee
  // or its priority; within a queue by priority only. So b's reservation does not keep a waiting.
  bool Precedes(const Job& a, const Job& b) const {
    if (a.queue != b.queue && WithinQuota(a) != WithinQuota(b)) return WithinQuota(a);
    return a.priority > b.priority;
  }
  const ServiceLevels& levels() const { return *levels_; }

 private:
  using Candidates = std::vector<std::pair<uint64_t, int>>;  // place within the queue, position

  bool MayLoseQuotaByGrowing(const Job& job) const;
  Resources UseOf(const Job& job) const;
  std::vector<bool> RunningWithinQuota(const std::vector<Candidates>& queues) const;

  const ServiceLevels* levels_;
  const Job* first_;
  std::vector<bool> within_quota_;  // by position in Snapshot::jobs
  const Snapshot* snapshot_;
  std::vector<int> kinds_;
  std::vector<Resources> left_;  // of the guaranteed quota, by queue
};

}  // namespace renzan::cluster
