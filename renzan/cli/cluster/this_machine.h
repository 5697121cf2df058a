#pragma once

// This machine as a cluster that nobody has described.

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan {

// One pool, "local", of `nodes` equal nodes that share what this machine has. `cpus_per_node` and
// `gpus_per_node` below 0: the cores, and for a single node the NVIDIA devices, that are there.
// More may be pretended.
cluster::spec::ClusterConfig ThisMachine(int nodes, double cpus_per_node, int64_t gpus_per_node);

}  // namespace renzan
