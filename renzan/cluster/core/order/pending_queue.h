#pragma once

// The order in which pending jobs are considered:
//
//   1. the grand challenge
//   2. jobs for which others are being stopped, so that no preemption is wasted
//   3. jobs within their queue's guaranteed quota, before jobs that would borrow
//   4. higher priority
//   5. one of the jobs that have waited longer than `overdue_after`: the first that starts or gets
//      the reservation. Each of them gets its turn, which bounds how long unfairness lasts. If all
//      of them went first, then with more than a day's backlog the queue would become plain FIFO,
//      and small jobs would wait as long as large ones.
//   6. the queue that uses the smaller share of its guaranteed quota
//   7. earlier submission
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
  // `quota` is read at every Next(), so that jobs started meanwhile count.
  PendingQueue(const ClusterView& view, const Quota& quota, const Entitlement& entitlement,
               TimeMs overdue_after);

  // Null at the end.
  const Job* Next();

  // The last job has started, was pipelined, or got the reservation.
  void Served();

 private:
  // Not within quota, -priority, not overdue, share, lane.
  using Key = std::tuple<bool, int, bool, double, int>;

  bool Overdue(const Job& job) const;
  Key KeyOf(int lane) const;
  void Enter(int lane);
  void EnterAll();
  const Job* Fetch(int lane);
  // Whether the next job of the last lane has the same key as the previous one.
  bool SameKeyAsLast() const;

  const Snapshot& snapshot_;
  const Quota& quota_;
  const Entitlement& entitlement_;
  const TimeMs overdue_after_;
  bool overdue_served_ = false;
  std::vector<const Job*> first_;  // rules 1 and 2
  size_t first_at_ = 0;
  // Two per queue: jobs within quota, and others. By priority, then submission.
  std::vector<std::vector<const Job*>> lanes_;
  std::vector<size_t> at_;  // of each lane
  std::set<Key> heads_;
  std::optional<std::pair<Key, uint64_t>> same_;  // the last job's key, and quota version then
  int last_ = -1;                                 // the lane used last; not in heads_
};

}  // namespace renzan::cluster
