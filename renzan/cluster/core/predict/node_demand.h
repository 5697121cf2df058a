#pragma once

// How many nodes of a pool will be in use, by hour of the week, learned from the weeks before: work
// comes in the mornings of working days. A pure function of what was observed. Not thread-safe.

#include <cstdint>
#include <map>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class NodeDemand {
 public:
  static constexpr int kHoursOfWeek = 7 * 24;
  static constexpr int64_t kWeeks = 8;  // earlier ones are forgotten

  // Up to this many nodes were in use during an hour, counted from the epoch (UTC).
  void Add(int64_t hour, int nodes);
  // For each hour of the week (hour modulo kHoursOfWeek): the number of nodes that were in use in
  // at least this share of the weeks; 0 if fewer than two weeks were observed. Only hours before
  // `now` count: the current one has not ended.
  std::vector<int> Expected(double share, int64_t now) const;
  const std::map<int64_t, int>& hours() const { return hours_; }
  // Forgets hours from `hour` on: the clock was wrong.
  void ForgetFrom(int64_t hour) { hours_.erase(hours_.lower_bound(hour), hours_.end()); }

 private:
  std::map<int64_t, int> hours_;
};

// How many nodes of the pool are expected to be in use at some time between `from` and `until`.
int ExpectedNodes(const Pool& pool, TimeMs from, TimeMs until);

// Watches the pools of a cluster for which nodes are booted ahead.
class DemandWatch {
 public:
  // Call it before a change: the snapshot's jobs are taken to have had their nodes since the last
  // call, unless that was more than a day ago. Updates Pool::expected_nodes once an hour.
  void Observe(TimeMs now, Snapshot& snapshot);
  // Restores the pools' past; before the first Observe().
  void Add(int pool, int64_t hour, int nodes) { demand_[pool].Add(hour, nodes); }
  // The clock went back to `now`.
  void ClockWentBack(TimeMs now);
  // By pool.
  const std::map<int, NodeDemand>& demand() const { return demand_; }

 private:
  std::map<int, NodeDemand> demand_;
  int64_t hour_ = -1;  // of the last Observe()
};

}  // namespace renzan::cluster
