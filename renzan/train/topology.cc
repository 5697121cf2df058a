#include "renzan/train/topology.h"

#include <string>
#include <vector>

#include "renzan/base/host.h"
#include "renzan/train/gather.h"

namespace renzan {

Topology TopologyOf(Communicator& comm) {
  const std::vector<std::string> names = GatherStrings(comm, HostName());
  Topology topology;
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    const size_t r = static_cast<size_t>(rank);
    if (r == 0 || names[r] != names[r - 1]) topology.hosts.push_back({rank, rank});
    topology.hosts.back().end = rank + 1;
  }
  return topology;
}

}  // namespace renzan
