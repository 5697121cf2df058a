#pragma once

// Whom kube-scheduler evicts for a pod that fits nowhere. Not thread-safe.

#include <map>
#include <optional>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {

class VictimTable {
 public:
  // Both must outlive this. The table itself is made only when somebody is to be pushed out.
  VictimTable(const Snapshot& snapshot, const std::map<JobId, Placement>& held)
      : snapshot_(snapshot), held_(held) {}

  // Whether any pod that could be evicted has lower priority.
  bool HasBelow(int priority);
  // Whether pods on the node have been told to go and are still there.
  bool SomebodyLeaves(int node);
  // Adds the evictions after which one such pod fits on a node, and returns the node; -1 if there
  // is none. `room` is as before: what the victims leave is not there yet, but later calls count on
  // it.
  int PushOut(Room& room, const WorkerRequest& request, int priority, std::vector<Evict>& evicts);

 private:
  struct Pod {
    JobId job;
    int priority;
    TimeMs started;
    int request;
  };
  struct Choice {
    int node = -1;
    std::vector<size_t> victims;  // in pods_[node]
    bool BetterThan(const Choice& other, const std::vector<std::vector<Pod>>& pods) const;
  };

  void Build();
  bool Choose(Room& room, const WorkerRequest& request, int priority, int node,
              Choice& choice) const;

  const Snapshot& snapshot_;
  const std::map<JobId, Placement>& held_;
  bool built_ = false;
  std::vector<std::vector<Pod>> pods_;  // of each node, most important first
  std::vector<bool> leaving_;
  std::vector<Resources> coming_;  // what victims chosen so far will leave on each node
  std::optional<int> lowest_priority_;
};

}  // namespace renzan::cluster::simulate
