#pragma once

// The cluster as it will be once all who leave have left and all nodes that are bought have come,
// with first-fit for gangs. What scaling of pools reckons with. Not thread-safe.

#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

class Rooms {
 public:
  // One for each node of the snapshot, by its index; nodes that leave have no room.
  Rooms(const Snapshot& snapshot, const Decisions& decisions);

  // One more for a node of the pool.
  void Buy(int pool);

  enum class Fit { kNowhere, kOnNodes, kOnBought };  // kOnBought: some of it
  // Takes room for so many workers, if there is enough for all of them.
  Fit Place(const WorkerRequest& request, int workers);

  // How many of so many workers there is room for, in a domain of the request's topology level; in
  // all rooms if it is empty.
  int Count(const WorkerRequest& request, int workers, const std::string& domain) const;
  // The domains at a level, also those that only pools have that could be bought of. None of
  // "host".
  std::vector<std::string> Domains(const std::string& level) const;

  // The node has workers, or will have, or is reserved.
  bool IsNeeded(int node) const { return rooms_[node].needed; }

 private:
  struct Room {
    const Labels* labels;
    Resources free;
    bool needed = false;
  };

  void Hold(const Job& job, const Placement& placement);
  bool MayUse(const Room& room, const WorkerRequest& request, const std::string& domain) const;
  Fit PlaceIn(const WorkerRequest& request, int workers, const std::string& domain);

  const Snapshot& snapshot_;
  std::vector<Room> rooms_;
};

}  // namespace renzan::cluster
