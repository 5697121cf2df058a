#pragma once

// Which nodes are in service, and how they come and go. Changes are committed to the store first.
// JobRunner stops and ends the workers on them.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/pool_observer.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class NodeManager {
 public:
  NodeManager(ClusterState& state, Store& store, PoolObserver& pools, const Clock& clock)
      : state_(state), store_(store), pools_(pools), clock_(clock) {}

  // --- After a restart.
  void Recover();
  // The node that a job's workers from before the restart run on. If the configuration no longer
  // has it, or it has become too small, it is drained and counts as large as they need, until
  // enough of them have left.
  int RecoverNodeOf(const NodeShare& share, const Job& job);
  bool IsGone(int node) const;

  int Find(const std::string& name) const;  // -1: there is none

  // --- Operators' commands. Throw Error kNoInput, kUsage or kIo. Return the node.
  int Cordon(const std::string& name);
  int Drain(const std::string& name, std::optional<TimeMs> notice_ms);
  int MarkFailed(const std::string& name);
  // False: the node has failed, or has become too small for its workers, and will be ready once
  // they have ended.
  bool Restore(const std::string& name);

  // Nothing new starts there until then (kNever: until it is set ready), for that reason; workers
  // stay.
  void Close(int node, ClosedBy by, const std::string& reason, TimeMs until);
  bool IsClosedBy(int node, ClosedBy by) const;

  // --- The scheduler's decisions.
  void Commit(const NodeChange& change) { Commit(change, ClosedBy::kOperator); }

  // --- Changes over time.
  // Nodes to set ready (they have booted), gone (their notice has expired) or to be reopened (they
  // were closed until now).
  std::vector<int> Due() const;
  TimeMs NextEvent() const;
  void SetReady(int node);
  // Until its last worker has ended it counts as draining.
  void SetGone(int node);
  // As SetGone, for a node that is gone in the store already.
  void RecoverGone(int node);
  // Workers on it have ended.
  void WorkersLeft(int node);
  // Its last worker has ended.
  void Vacated(int node);

  // Workers from before a change of the configuration may hold devices that are now other nodes'.
  // Those nodes have fewer until they end, so that no two workers get the same device. Call it
  // after nodes have changed otherwise than through this class.
  void ShareDevices();

 private:
  int Named(const std::string& name) const;
  int InService(const std::string& name) const;
  void Commit(const NodeChange& change, ClosedBy by);
  void Set(int node, NodeState state, TimeMs until, ClosedBy by = ClosedBy::kOperator,
           const std::string& reason = "");
  void ForgetFailuresOn(int node);
  void BeTooSmall(int node, const Resources& used);
  void RestoreIfLargeEnough(int node);

  ClusterState& state_;
  Store& store_;
  PoolObserver& pools_;
  const Clock& clock_;
  std::map<int, ClosedBy> closed_by_;  // other than by an operator
  std::set<int> emptying_;             // gone in the store, with workers that have not ended yet
  std::set<int> restored_;             // of those: will be ready then
  // A node whose workers use more than it is configured to have.
  struct TooSmall {
    Resources configured;
    // As in the store: restored once the workers fit.
    NodeState state;
    TimeMs until = kNever;
  };
  std::map<int, TooSmall> too_small_;
  bool short_of_devices_ = false;  // some nodes have fewer than they are configured to have
};

}  // namespace renzan::cluster::local
