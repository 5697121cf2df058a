#pragma once

// Where the workers are, and how much memory there is. Every rank makes the same calls.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/plan/cost_model.h"

namespace renzan {

// Memory that some workers share: a machine's, or what a cgroup may use.
struct SharedMemory {
  std::string name;        // the cgroup; empty for a machine
  int64_t bytes = 0;       // what may still be taken
  std::vector<int> ranks;  // those that share it
};

// By machine (not by host name: containers have their own), then by cgroup.
std::vector<SharedMemory> MemoryOfWorkers(Communicator& comm);

// Neighbouring ranks with the same host name are on one host. Each worker's memory is the smallest
// equal share of what MemoryOfWorkers() finds.
Topology TopologyOf(Communicator& comm);

}  // namespace renzan
