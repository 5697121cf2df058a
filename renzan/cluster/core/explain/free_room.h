#pragma once

// What is free on each node between two cycles of a future (future.h), for jobs that take over the
// room of those that end. Not thread-safe.

#include <optional>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class FreeRoom {
 public:
  FreeRoom() = default;
  // Right after a cycle. Nothing is free on nodes that are reserved, or where jobs stop: that room
  // is somebody's already.
  explicit FreeRoom(const Snapshot& snapshot);

  void Take(const WorkerRequest& request, const Placement& placement);
  // Of a job that ended there.
  void GiveBack(const WorkerRequest& request, const Placement& placement);
  // Whether any of these nodes has some of everything left that such a worker needs.
  bool IsAnyLeft(const WorkerRequest& request, const Placement& placement) const;

  // Room for a gang where another one ended: in its place if they are equal, else on one of its
  // nodes.
  std::optional<Placement> For(int request, int workers, const Job& ended,
                               const Snapshot& snapshot) const;

 private:
  bool Holds(const WorkerRequest& request, const Placed& placed) const;

  std::vector<Resources> free_;      // by node
  std::vector<bool> is_spoken_for_;  // by node
};

}  // namespace renzan::cluster
