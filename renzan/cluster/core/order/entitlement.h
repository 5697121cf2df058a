#pragma once

// Which jobs are within their queue's guaranteed quota? Running jobs that are not preemptible come
// first: they never borrow, so what the queue has borrowed can always be reclaimed from its other
// jobs. Then higher priority first; then running jobs that would lose work if stopped, so that a
// reclaim costs work only where nothing else is borrowed; then, with fair share, users who have
// used less; then less service, running jobs, earlier submission. A job that does not fit into the
// rest of the guaranteed quota is skipped. Jobs within quota cannot be preempted by other queues,
// and may reclaim what other queues have borrowed.
//
// Workers that can be taken back one by one do not count: they are borrowed. Nor does a pending job
// that could not find room, beside those before it, if all jobs stopped that may be stopped for it:
// it stays within quota, but others use that quota until there is room for it.
//
// What the queues of one parent leave of its guaranteed quota goes to their other jobs, in the same
// order. Those are within the parent's quota: it counts against queues that are not below this
// parent. What parents leave of their own parent's goes on in the same way.

#include <functional>
#include <tuple>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class Entitlement {
 public:
  // Completes `ranks`. `may_start`: whether a pending job could start at all; a job that cannot
  // uses no quota.
  Entitlement(const ClusterView& view, const Quota& quota, const Occupants& occupants, Ranks& ranks,
              const std::function<bool(const Job&)>& may_start);

  // How many workers beyond `workers`, which already count, the job may get, up to its max_workers.
  // A job within quota that could not be shrunk again does not get so many that it, or another job
  // of its queue, would leave the quota: it would then be stopped for what it has borrowed.
  int MoreWorkers(const Job& job, int workers) const;
  // Charges `more` workers to the quota that the job is within, so that others cannot get it, too.
  void Take(const Job& job, int more);
  const Ranks& ranks() const { return ranks_; }

 private:
  // A job's place within its queue, the least first: movable, right, loses nothing, use, service,
  // pending, position in Snapshot::jobs.
  using Places = std::vector<std::tuple<bool, Right, bool, Use, Service, bool, int>>;

  bool MayLoseQuotaByGrowing(const Job& job) const;
  int WithinWhich(const Job& job) const;
  Resources UseOf(const Job& job) const;
  std::vector<Standing> StandingOfRunning(const std::vector<Places>& queues) const;
  void Entitle(int queue, const Places& places, Ranks& ranks,
               const std::function<bool(const Job&)>& may_start,
               const std::function<bool(const Job&)>& take_room);
  void TakeOutOfParent(int parent, std::vector<Resources>& left) const;
  Places Below(int parent, const std::vector<Places>& queues,
               const std::function<bool(int)>& borrows) const;
  static Places Merged(const std::vector<Places>& queues);

  const Ranks& ranks_;
  const Snapshot& snapshot_;
  std::vector<int> kinds_;
  std::vector<Resources> left_;  // of the guaranteed quota, by queue
};

}  // namespace renzan::cluster
