#pragma once

// What is free on the nodes, while a baseline hands it out. Not thread-safe.

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
  // Leaves no more of any kind on the node than `other` has there.
  void LimitTo(int node, const Room& other);
  bool Fits(int node, const WorkerRequest& request) const;
  // How many workers of that request fit on the node at once.
  int CountFitting(int node, const WorkerRequest& request, int at_most) const;

  // The node on which least stays free beside one such worker (GPUs first, then cores), the first
  // of equals; -1 if it fits nowhere.
  int BestNode(const WorkerRequest& request) const;
  // Takes room for as many workers as there is, at most `most`; gives it back and returns nothing
  // if there is not enough for `least`.
  std::optional<Placement> Place(const WorkerRequest& request, int least, int most);

 private:
  const Snapshot& snapshot_;
  std::vector<Resources> free_;
};

// Stops for jobs that save their work and stand on nodes that are about to go.
std::vector<Stop> StopOnLeavingNodes(const Snapshot& snapshot);

}  // namespace renzan::cluster::simulate
