#pragma once

// Refuses a run that does not fit into memory, before anything is allocated.

#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/planning/memory_estimate.h"
#include "renzan/planning/topology.h"

namespace renzan {

// The reason why the workers do not fit, with a line for each worker that shares the memory of
// which there is too little; empty if they fit.
std::string WhyItDoesNotFit(std::span<const MemoryEstimate> workers,
                            std::span<const SharedMemory> memory);

// How many bytes more than its `total()` a worker may take for `more_copies`: what the others leave
// of the memory that they share, in equal parts.
int64_t RoomForCopies(int rank, std::span<const MemoryEstimate> workers,
                      std::span<const SharedMemory> memory);

// Compares what the workers need with what their machines and cgroups have. `mine`: this worker's.
// Returns its RoomForCopies. Throws kOsError on every rank if they do not fit. Every rank calls it.
int64_t CheckMemory(const MemoryEstimate& mine, Communicator& comm);

}  // namespace renzan
