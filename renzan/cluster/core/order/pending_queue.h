#pragma once

// Who is next? Pending jobs, one after the other:
//
//   1. the grand challenge
//   2. jobs for which others are being stopped: nobody is preempted in vain
//   3. jobs that their queue's guarantee covers, before jobs that would borrow
//   4. higher priority
//   5. of the jobs that have waited longer than `overdue_after` one: the first that gets a place or
//      the reservation. Each of them comes to be that one, which bounds how long unfairness lasts.
//      Did all of them go first, then everybody would wait as long as everybody else as soon as
//      there is more than a day's work to do, small jobs as long as large ones.
//   6. the queue with the smaller share of what it is guaranteed
//   7. the job that was submitted first
//
// Not thread-safe.

#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "renzan/cluster/core/order/entitlement.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class PendingQueue {
 public:
  // `quota` is read again whenever a job has been fetched: what has started meanwhile counts.
  PendingQueue(const ClusterView& view, const Quota& quota, const Entitlement& entitlement,
               TimeMs overdue_after);

  // The next job, or null at the end.
  const Job* Next();

  // The job that was fetched last has a place, or the reservation.
  void Served();

 private:
  // Not within quota, -priority, not overdue, share, lane.
  using Key = std::tuple<bool, int, bool, double, int>;

  bool Overdue(const Job& job) const;
  Key KeyOf(int lane) const;
  void Enter(int lane);
  void EnterAll();
  const Job* Fetch(int lane);
  // The next job of the last lane has the key of the one before.
  bool LikeTheLast() const;

  const Snapshot& snapshot_;
  const Quota& quota_;
  const Entitlement& entitlement_;
  const TimeMs overdue_after_;
  bool overdue_served_ = false;
  std::vector<const Job*> first_;  // 1 and 2
  size_t first_at_ = 0;
  // Two for each queue: jobs that are within quota, and others. By priority, then place.
  std::vector<std::vector<const Job*>> lanes_;
  std::vector<size_t> at_;  // of each lane
  std::set<Key> heads_;
  std::optional<std::pair<Key, uint64_t>> same_;  // the last job's, and the quota's version then
  int last_ = -1;  // the lane that was fetched from last; not in heads_
};

}  // namespace renzan::cluster
