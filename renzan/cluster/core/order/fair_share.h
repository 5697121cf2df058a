#pragma once

// Fair share between the users of a queue: of equal priority, jobs of those who have used less of
// it lately go first. What counts is GPU time, or CPU time where there are no GPUs; a second of it
// counts half after the queue's half-life, a quarter after twice that time.
//
// Users are compared by levels, each half as much as the next: the user who has used the most, of
// those with jobs in the queue, is on the top one. So the order does not change with every second
// that somebody uses. No job is stopped because its user has used more: it only decides who starts
// next, which jobs are within the queue's guaranteed quota (entitlement.h), and that a job is not
// stopped for one with less service (service_levels.h) whose user is on a higher level.
//
// All amounts decay alike, so levels change only with what running jobs use. How much somebody has
// used is up to the environment, which calls AdvanceTo() or does likewise (FairShare in
// snapshot.h). What decides here is exact on every machine: sums, products and quotients only.

#include <utility>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// --- For environments.

// The kind that counts: GPUs if any node or pool has some, else CPU.
int KindThatCounts(const Snapshot& snapshot);
// What `workers` workers of the job use, in seconds of that kind per second.
double UsePerSecond(const Snapshot& snapshot, const Job& job, int workers, int kind);
// What counts of `seconds` after `passed`, and of a steady use at its end.
double Decayed(double seconds, TimeMs passed, TimeMs half_life);
double DecayedUse(double per_second, TimeMs passed, TimeMs half_life);
// What the user has used so far, as of Snapshot::now.
double UsedBy(const FairShare& fair_share, int user);
// Sets Snapshot::now, and what users have used by then if all that hold resources have held them
// since.
void AdvanceTo(TimeMs now, Snapshot& snapshot);

// --- For the order.

class FairShares {
 public:
  explicit FairShares(const Snapshot& snapshot);

  // Whether any queue has fair share.
  bool any() const { return !queues_.empty(); }
  // 0 where there is no fair share; else from 1, the least, to kLevels.
  int LevelOf(int queue, int user) const {
    return any() && !queues_[queue].levels.empty() ? queues_[queue].levels[user] : 0;
  }

  // When a level changes next, if these go on with so many workers each; hardly later, rather
  // sooner. kNever: not.
  using Running = std::vector<std::pair<const Job*, int>>;
  TimeMs NextChange(const Running& running) const;

  static constexpr int kLevels = 16;

 private:
  // By user, as are the members.
  struct OfQueue {
    std::vector<double> used;
    std::vector<int> levels;  // empty: no fair share
    std::vector<bool> has_jobs;
    double most = 0;       // of those that have jobs
    double mean_life = 0;  // seconds
  };

  const Snapshot* snapshot_;
  std::vector<OfQueue> queues_;  // empty: none has fair share
};

}  // namespace renzan::cluster
