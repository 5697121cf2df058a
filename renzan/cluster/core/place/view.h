#pragma once

// The cluster during a scheduling cycle: the snapshot plus what the cycle has decided so far. Three
// amounts of free resources are tracked for each node:
//
//   now         free at this moment: new workers start here
//   future      free once all stopping jobs have stopped and bought nodes are up, less what earlier
//               jobs are pipelined onto (Volcano's FutureIdle): jobs are pipelined here
//   unreserved  future plus what backfilled jobs hold, less what is reserved: only backfilled jobs
//               may use more than this
//
// A start must fit into all three; a backfilled one only into the first two. Not thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/place/node_set.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

enum class Room { kNow, kFuture };

class ClusterView {
 public:
  explicit ClusterView(const Snapshot& snapshot);

  const Snapshot& snapshot() const { return *snapshot_; }
  // Indices in Snapshot::jobs of the jobs that hold resources: usually few among many pending ones.
  const std::vector<int>& holders() const { return holders_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }

  // Total capacity of the ready nodes.
  const Resources& total() const { return total_; }
  // Total of what is free now on them, reserved or not.
  const Resources& free_now() const { return free_now_; }
  // Total of kFuture, of the packing kind.
  int64_t free_future() const { return free_future_; }
  // At least what is free now on the node with the most, of the packing kind.
  int64_t LargestFree() const { return now_index_.Largest(); }
  // The kind by which nodes are compared: GPUs if there are any, else CPU.
  int packing_kind() const { return packing_kind_; }
  // How many workers with that request fit on a node; with `unreserved`, on unreserved resources.
  int Count(const WorkerRequest& request, int node, Room room, bool unreserved) const;
  // What is free on a node; for kNow, the smaller of kNow and kFuture.
  Resources Free(int node, Room room) const;
  // Negative where more is reserved than will be free.
  const Resources& Unreserved(int node) const { return nodes_[node].unreserved; }

  const LevelIndex& index(Room room) const {
    return room == Room::kNow ? now_index_ : future_index_;
  }
  // Nodes that can hold workers with that request, by labels, state and size, grouped in the order
  // in which to fill them: preferred labels first, then own machines before paid ones, then spot
  // nodes first for jobs that checkpoint and last for jobs that do not.
  const std::vector<NodeSet>& Tiers(int request, bool checkpoints) const;
  // The domains at a topology level other than "host".
  const std::vector<NodeSet>& Domains(const std::string& level) const;

  // Workers start now.
  void TakeNow(const Resources& per_worker, const Placement& placement, bool backfilled);
  // A job is pipelined.
  void TakeFuture(const Resources& per_worker, const Placement& placement);
  // Running workers are told to stop.
  void Release(const Resources& per_worker, const Placement& placement, bool backfilled);
  void Reserve(const Resources& per_worker, const Placement& placement);
  void Unreserve(const Resources& per_worker, const Placement& placement);

 private:
  struct NodeRoom {
    Resources now, future, unreserved;
  };
  void Reindex(int node);
  void Hold(const Job& job);

  const Snapshot* snapshot_;
  int packing_kind_;
  Resources total_, free_now_;
  int64_t free_future_ = 0;
  std::vector<NodeRoom> nodes_;
  NodeSet usable_;  // ready or booting
  LevelIndex now_index_, future_index_;
  std::vector<int> holders_;
  mutable std::map<std::pair<int, bool>, std::vector<NodeSet>> tiers_;
  mutable std::map<std::string, std::vector<NodeSet>> domains_;
};

}  // namespace renzan::cluster
