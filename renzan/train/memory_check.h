#pragma once

// Refuses a run that does not fit into memory, before anything is allocated.

#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/plan/cost_model.h"
#include "renzan/train/memory_estimate.h"

namespace renzan {

// What may still be taken on one worker's host, and what limits it: "" is the machine.
struct MemoryRoom {
  int64_t bytes = 0;
  std::string cgroup;
};

// The reason why the workers do not fit, with a line for each worker of the host that has too
// little; empty if they fit. `rooms`: by worker.
std::string WhyItDoesNotFit(const std::vector<MemoryEstimate>& workers, const Topology& topology,
                            const std::vector<MemoryRoom>& rooms);

// Compares what the workers need with what their hosts and cgroups have. Throws kOsError on every
// rank if they do not fit. Every rank calls it.
void CheckMemory(const std::vector<MemoryEstimate>& workers, Communicator& comm);

}  // namespace renzan
