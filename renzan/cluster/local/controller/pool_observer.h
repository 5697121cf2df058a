#pragma once

// Measures how often the nodes of each pool are interrupted, and keeps the snapshot's rates up to
// date. Time without a daemon is not observed.

#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/controller/pool_history.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class PoolObserver {
 public:
  PoolObserver(Snapshot& snapshot, Store& store, const Clock& clock)
      : snapshot_(snapshot), store_(store), clock_(clock) {}

  void Recover();
  // Counts the time for which nodes have been in service and in use. Call it before that changes.
  void Observe();
  // The node has failed, or goes away after a notice.
  void CountInterruption(int node);
  // Within a transaction.
  void Put();
  // In the order of Snapshot::pools, up to now.
  const std::vector<PoolHistory>& Histories();
  void ClockWentBack(TimeMs now);
  // The time by which it jumped is not observed.
  void ClockJumped(TimeMs by) { observed_until_ += by; }

 private:
  Snapshot& snapshot_;
  Store& store_;
  const Clock& clock_;
  std::vector<PoolHistory> pools_;
  TimeMs observed_until_ = 0;
};

}  // namespace renzan::cluster::local
