#pragma once

// Amounts of resources in words.

#include <cstdint>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// "1 GPU", "2.5 CPUs", "64 GiB of memory", "3 of rdma".
std::string DescribeAmount(const Snapshot& snapshot, int kind, int64_t amount);

// Every nonzero kind, GPUs first: "8 GPUs, 32 CPUs and 64 GiB of memory"; "nothing" if all are 0.
std::string DescribeResources(const Snapshot& snapshot, const Resources& resources);

}  // namespace renzan::cluster
