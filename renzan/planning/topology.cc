#include "renzan/planning/topology.h"

#include <algorithm>
#include <limits>
#include <map>

#include "renzan/base/host.h"
#include "renzan/base/memory_budget.h"
#include "renzan/comm/gather.h"

namespace renzan {
std::vector<SharedMemory> MemoryOfWorkers(Communicator& comm) {
  const MemoryBudget budget = ReadMemoryBudget();
  const std::vector<std::string> machines = GatherStrings(comm, MachineId());
  const std::vector<std::string> cgroups =
      GatherStrings(comm, budget.room_cgroup.empty() ? "" : HostName() + " " + budget.room_cgroup);
  const std::vector<int64_t> available = AllGatherValues(comm, budget.available);
  const std::vector<int64_t> rooms = AllGatherValues(comm, budget.room);
  std::map<std::string, SharedMemory> of_machines, of_cgroups;
  for (size_t r = 0; r < machines.size(); ++r) {
    const auto add = [&](SharedMemory* shared, int64_t bytes) {
      shared->bytes = shared->ranks.empty() ? bytes : std::min(shared->bytes, bytes);
      shared->ranks.push_back(static_cast<int>(r));
    };
    // 0: unknown
    add(&of_machines[machines[r]],
        available[r] > 0 ? available[r] : std::numeric_limits<int64_t>::max());
    if (cgroups[r].empty()) continue;
    SharedMemory& cgroup = of_cgroups[machines[r] + cgroups[r]];
    cgroup.name = cgroups[r].substr(cgroups[r].find(' ') + 1);
    add(&cgroup, rooms[r]);
  }
  std::vector<SharedMemory> result;
  for (const auto* all : {&of_machines, &of_cgroups})
    for (const auto& [key, shared] : *all) result.push_back(shared);
  return result;
}

Topology TopologyOf(Communicator& comm) {
  const std::vector<std::string> names = GatherStrings(comm, HostName());
  Topology topology;
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    const size_t r = static_cast<size_t>(rank);
    if (r == 0 || names[r] != names[r - 1]) topology.hosts.push_back({rank, rank});
    topology.hosts.back().end = rank + 1;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const SharedMemory& shared : MemoryOfWorkers(comm))
    least = std::min(least,
                     static_cast<double>(shared.bytes) / static_cast<double>(shared.ranks.size()));
  topology.rates.memory_bytes = least;
  return topology;
}

}  // namespace renzan
