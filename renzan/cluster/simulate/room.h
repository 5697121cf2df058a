#pragma once

// Free resources on the nodes while a baseline places jobs. Not thread-safe.

#include <optional>
#include <span>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

class Room {
 public:
  // `free` by node. The snapshot must outlive this.
  Room(const Snapshot& snapshot, std::span<const Resources> free);

  const Resources& free(int node) const { return free_[node]; }
  void Take(int node, const Resources& amount) { free_[node] -= amount; }
  void Give(int node, const Resources& amount) { free_[node] += amount; }
  void SetFree(int node, const Resources& amount) { free_[node] = amount; }
  // Reduces what is free on the node to at most what `other` has there, in each kind.
  void LimitTo(int node, const Room& other);
  bool Fits(int node, const WorkerRequest& request) const;
  // How many workers with that request fit on the node.
  int CountFitting(int node, const WorkerRequest& request, int at_most) const;

  // Best fit: the node with the least free (GPUs, then cores) on which a worker fits, the first of
  // equals; -1 if there is none.
  int BestNode(const WorkerRequest& request) const;
  // Places as many workers as fit, at most `most`; none if fewer than `least` fit.
  std::optional<Placement> Place(const WorkerRequest& request, int least, int most);

 private:
  const Snapshot& snapshot_;
  std::vector<Resources> free_;
};

// Stops for jobs that checkpoint and run on draining nodes.
std::vector<Stop> StopOnLeavingNodes(const Snapshot& snapshot);

}  // namespace renzan::cluster::simulate
