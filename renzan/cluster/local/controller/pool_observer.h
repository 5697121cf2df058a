#pragma once

// Measures how often the nodes of each pool are interrupted and how many are in use, and keeps the
// snapshot's rates and expectations up to date. Time without a daemon is not observed.

#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/predict/node_demand.h"
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
  // Put() within a transaction, the other once it has been committed.
  void Put();
  void Committed() { stored_until_ = observed_until_ / kHour; }
  // In the order of Snapshot::pools, up to now.
  const std::vector<PoolHistory>& Histories();
  void ClockWentBack(TimeMs now);
  // The time by which it jumped is not observed.
  void ClockJumped(TimeMs by) { observed_until_ += by; }

 private:
  void PutHours();

  Snapshot& snapshot_;
  Store& store_;
  const Clock& clock_;
  std::vector<PoolHistory> pools_;
  DemandWatch demand_;
  int64_t stored_until_ = 0;  // the values of hours from here on may not have been stored
  TimeMs observed_until_ = 0;
};

}  // namespace renzan::cluster::local
