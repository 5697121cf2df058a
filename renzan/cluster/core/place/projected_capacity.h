#pragma once

// Free resources once all stopping jobs have stopped and all bought nodes are up, with first-fit
// placement of gangs. Used to scale pools. Not thread-safe.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class ProjectedCapacity {
 public:
  // One entry per node of the snapshot, by index; draining nodes have no room.
  ProjectedCapacity(const Snapshot& snapshot, const Decisions& decisions);

  // Adds one node of the pool.
  void Buy(int pool);

  enum class Fit { kNowhere, kOnNodes, kOnBought };  // kOnBought: at least in part
  // Takes room for all of the workers, or for none.
  Fit Place(const WorkerRequest& request, int workers);

  // How many of the workers fit in a domain of the request's topology level; "": on all nodes.
  int Count(const WorkerRequest& request, int workers, const std::string& domain) const;
  // The domains at a level, including those that only exist as labels of pools. None for "host".
  std::vector<std::string> Domains(const std::string& level) const;

  // Whether the node has workers, will have, or is reserved.
  bool IsNeeded(int node) const { return capacity_[node].needed; }

 private:
  struct Room {
    const Labels* labels;
    Resources free;
    bool needed = false;
    const Node* node = nullptr;  // null: it has been bought
  };

  void Hold(const Job& job, const Placement& placement);
  bool MayUse(const Room& room, const WorkerRequest& request, const std::string& domain) const;
  Fit PlaceIn(const WorkerRequest& request, int workers, const std::string& domain);

  const Snapshot& snapshot_;
  std::vector<Room> capacity_;
};

}  // namespace renzan::cluster
