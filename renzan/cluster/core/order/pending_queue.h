#pragma once

// The order in which pending jobs are considered:
//
//   1. grand challenges
//   2. jobs for which others are being stopped, so that no preemption is wasted
//   3. jobs within their queue's guaranteed quota, then within that of its parent, before jobs that
//      would borrow from others
//   4. higher priority
//   5. jobs that are overdue (OverdueAt()), longest first, until one of them has started. One start
//      per cycle bounds how long unfairness lasts. If all of them went first, then with more than a
//      day's backlog the queue would become plain FIFO, and small jobs would wait as long as large
//      ones.
//   6. within a queue with fair share, a user who has used less of it lately (fair_share.h)
//   7. less service so far (service_levels.h)
//   8. the queue that uses the smaller share of its guaranteed quota
//   9. earlier submission
//
// Rule 6 concerns nobody but the jobs of one queue: they exchange their turns. Whenever one of them
// would be next without that rule, the first by rule 6 is.
//
// Not thread-safe.

#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// When a pending job becomes overdue: after it has waited for `overdue_after` plus four times the
// service by which it is ranked (service_levels.h). So a job that has not run yet and saves its
// work is overdue after `overdue_after`; for one that does not save its work, four times its
// expected need is added.
TimeMs OverdueAt(const Job& job, TimeMs overdue_after);

// When a job's turn comes, as other queues see it.
struct Turn {
  Rank rank;
  int submitted;  // position in Snapshot::jobs
  auto operator<=>(const Turn&) const = default;
};

// The turns of pending jobs of one queue, which are sorted by rank: the first gets the first turn
// that any of them has, and so on.
std::vector<Turn> ExchangedTurns(const std::vector<const Job*>& jobs, const Ranks& ranks,
                                 const Snapshot& snapshot);

class PendingQueue {
 public:
  // `quota` is read at every Next(), so that jobs started meanwhile count.
  PendingQueue(const ClusterView& view, const Quota& quota, const Ranks& ranks,
               TimeMs overdue_after);

  // Null at the end.
  const Job* Next();

  // The last job has started or was pipelined.
  void Served();

 private:
  // Rank among queues, share, submission where shares do not count, lane.
  using Key = std::tuple<Rank, double, int, int>;

  Rank RankOfNext(int lane) const;
  Key KeyOf(int lane) const;
  void Enter(int lane);
  void EnterAll();
  const Job* Fetch(int lane);
  void SkipTaken(int lane);
  const Job* NextOverdue();
  const Job* NextOfLanes();
  // Whether the next job of the last lane has the same key as the previous one.
  bool SameKeyAsLast() const;

  const Snapshot& snapshot_;
  const Quota& quota_;
  const Ranks& ranks_;
  std::vector<const Job*> first_;  // rules 1 and 2
  size_t first_at_ = 0;
  std::vector<const Job*> overdue_;  // by class of rank, then waiting time
  size_t overdue_at_ = 0;
  bool last_is_overdue_ = false;
  std::vector<bool> taken_;  // overdue jobs that Next() has returned, by position in the snapshot
  // Jobs within quota, and others, by rank and submission. Two lanes per queue if queues
  // have guaranteed quotas or fair share, otherwise two.
  std::vector<std::vector<const Job*>> lanes_;
  std::vector<size_t> at_;                // of each lane
  std::vector<std::vector<Turn>> turns_;  // of each lane; empty: no queue has fair share
  std::set<Key> heads_;
  std::optional<std::pair<Key, uint64_t>> same_;  // the last job's key, and quota version then
  int last_ = -1;                                 // the lane used last; not in heads_
};

}  // namespace renzan::cluster
