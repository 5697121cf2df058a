#pragma once

// Refuses a run that does not fit into memory, before anything is allocated.

#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/planning/memory_estimate.h"
#include "renzan/planning/topology.h"

namespace renzan {

// Why the workers do not fit, with a line for each worker that shares the scarce memory; "" if they
// fit.
std::string WhyItDoesNotFit(std::span<const MemoryEstimate> workers,
                            std::span<const SharedMemory> memory);

// How many bytes beyond its `total()` a worker may use for `more_copies`: an equal part of what all
// workers leave of the memory that they share.
int64_t RoomForCopies(int rank, std::span<const MemoryEstimate> workers,
                      std::span<const SharedMemory> memory);

// Compares what the workers need with what their machines and cgroups have. `mine` is this worker's
// estimate. Returns this worker's RoomForCopies(). Throws kOsError on every rank if they do not
// fit. Every rank calls it.
int64_t CheckMemory(const MemoryEstimate& mine, Communicator& comm);

}  // namespace renzan
