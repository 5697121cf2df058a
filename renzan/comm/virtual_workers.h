#pragma once

// Which virtual workers are assigned to a worker: a contiguous range of [0, V), for any number of
// workers from 1 to V. Pure functions.

#include "renzan/base/error.h"
#include "renzan/base/index_range.h"

namespace renzan {

inline IndexRange VirtualWorkerRange(int num_virtual_workers, int world_size, int rank) {
  CHECK(world_size >= 1 && world_size <= num_virtual_workers);
  CHECK(rank >= 0 && rank < world_size);
  return {rank * num_virtual_workers / world_size, (rank + 1) * num_virtual_workers / world_size};
}

}  // namespace renzan
