#pragma once

// Takes nodes out of service that fail the jobs that start on them, for a time, and lets one user's
// jobs avoid those that fail them. Suspicion (core/engine/suspicion.h) says which; this stores what
// it knows.

#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/engine/suspicion.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/node_checker.h"
#include "renzan/cluster/local/controller/node_manager.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class NodeHealth {
 public:
  // A job that has run for `early_failure_ms` has run well. A suspected node takes no work for
  // `suspect_for_ms`; 0: no node is ever suspected.
  NodeHealth(TimeMs early_failure_ms, TimeMs suspect_for_ms, ClusterState& state, Store& store,
             NodeManager& nodes, NodeChecker& checker)
      : early_failure_ms_(early_failure_ms),
        suspect_for_ms_(suspect_for_ms),
        state_(state),
        store_(store),
        nodes_(nodes),
        checker_(checker) {}

  // After a restart, once jobs and nodes have been recovered.
  void Recover();
  // The end of an attempt, which has been committed with `early`. `well`: it was not the job's or a
  // node's failure.
  void AttemptEnded(const AttemptRecord& attempt, const std::string& user, TimeMs ran_ms, bool well,
                    const std::optional<EarlyFailure>& early);
  // Its health check had closed it. What failed there before that may still make it suspected.
  void PassedItsCheck(int node);
  // The time for which it was suspected is over.
  void Reopen(int node);

 private:
  void Put(const std::vector<EarlyFailure>& changed);
  // Tells the scheduler on which nodes the user's jobs fail.
  void NoteFailing(const std::string& user);
  std::vector<FailingNode>& FailingOn(const std::string& user);
  void SuspectIfWarranted(const std::string& name);
  bool MayClose(int node) const;

  const TimeMs early_failure_ms_, suspect_for_ms_;
  ClusterState& state_;
  Store& store_;
  NodeManager& nodes_;
  NodeChecker& checker_;
};

}  // namespace renzan::cluster::local
