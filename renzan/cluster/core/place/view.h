#pragma once

// The cluster as one cycle sees it: the snapshot and what the cycle has decided so far. Rooms:
//
//   now      what is free this moment and not kept for somebody: new workers start here
//   vacated  what will be free once all who leave have left and bought nodes are there, less what
//            jobs wait for that go first: jobs may wait for a place here
//   firm     vacated, and also what backfilled jobs hold, less what is reserved: only a job that
//            yields without loss may stand on more than this
//
// A start must fit into all three, unless it is backfilled; then into the first two. Not
// thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/place/node_set.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

enum class Room { kNow, kVacated };

class ClusterView {
 public:
  explicit ClusterView(const Snapshot& snapshot);

  const Snapshot& snapshot() const { return *snapshot_; }
  // Positions in Snapshot::jobs of those that hold resources: few among many that wait.
  const std::vector<int>& holders() const { return holders_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }

  // Sum of the capacity of all nodes that may hold workers.
  const Resources& total() const { return total_; }
  // Sum of what is free now on all of them, whoever it is kept for.
  const Resources& free_now() const { return free_now_; }
  // Of the packing kind, in sum: what is in the room kVacated.
  int64_t free_later() const { return free_later_; }
  // The kind by which nodes are compared: GPUs where there are any, else CPU.
  int packing_kind() const { return packing_kind_; }
  // How many workers of that request fit on a node. With `firm`, not on what is reserved.
  int Count(const WorkerRequest& request, int node, Room room, bool firm) const;
  // Free on a node; for kNow, what both rooms have.
  Resources Free(int node, Room room) const;
  // The firm room of a node; negative where more is reserved than will be free.
  const Resources& Firm(int node) const { return nodes_[node].firm; }

  const LevelIndex& index(Room room) const {
    return room == Room::kNow ? now_index_ : later_index_;
  }
  // Nodes that may hold workers of that request at all: labels, state and size, in the order in
  // which they should be filled: preferred labels first, then own machines before hired ones, then,
  // for jobs that checkpoint, spot nodes before those that stay (and the other way round).
  const std::vector<NodeSet>& Tiers(int request, bool checkpoints) const;
  // The domains of the topology level that the request asks for, "host" excepted.
  const std::vector<NodeSet>& Domains(const std::string& level) const;

  // A job's workers from this moment on.
  void TakeNow(const Resources& per_worker, const Placement& placement, bool backfilled);
  // A place that a job waits for.
  void TakeVacated(const Resources& per_worker, const Placement& placement);
  // A running job is told to leave (part of) its place.
  void Vacate(const Resources& per_worker, const Placement& placement, bool backfilled);
  // Firm room is kept for a job.
  void Reserve(const Resources& per_worker, const Placement& placement);

 private:
  struct NodeRoom {
    Resources now, vacated, firm;
  };
  void Reindex(int node);
  void Hold(const Job& job);

  const Snapshot* snapshot_;
  int packing_kind_;
  Resources total_, free_now_;
  int64_t free_later_ = 0;
  std::vector<NodeRoom> nodes_;
  NodeSet coming_;  // ready or about to be
  LevelIndex now_index_, later_index_;
  std::vector<int> holders_;
  mutable std::map<std::pair<int, bool>, std::vector<NodeSet>> tiers_;
  mutable std::map<std::string, std::vector<NodeSet>> domains_;
};

}  // namespace renzan::cluster
