#pragma once

// Which pods kube-scheduler preempts for an unschedulable pod. Not thread-safe.

#include <map>
#include <optional>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/room.h"

namespace renzan::cluster::simulate {

class VictimTable {
 public:
  // Both must outlive this. The table is built only when it is needed.
  VictimTable(const Snapshot& snapshot, const std::map<JobId, Placement>& held)
      : snapshot_(snapshot), held_(held) {}

  // Whether any preemptible pod has lower priority.
  bool HasBelow(int priority);
  // Whether the node has pods that are stopping.
  bool HasStopping(int node);
  // Adds the evictions after which one such pod fits on a node, and returns the node; -1 if there
  // is none. Does not change `room`, but later calls count on what the victims will release.
  int Preempt(Room& room, const WorkerRequest& request, int priority, std::vector<Evict>& evicts);

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
  std::vector<std::vector<Pod>> pods_;  // by node, highest priority first
  std::vector<bool> leaving_;
  std::vector<Resources> released_;  // by node: what the victims chosen so far will release
  std::optional<int> lowest_priority_;
};

}  // namespace renzan::cluster::simulate
