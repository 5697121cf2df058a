#pragma once

// The default cluster: this machine.

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan {

// One pool, "local", of `nodes` equal nodes that share this machine. If negative, `cpus_per_node`
// and `gpus_per_node` are detected (GPUs only for a single node); they may exceed the real
// hardware, GPUs only if the cluster is then said to be simulated.
cluster::spec::ClusterConfig ThisMachine(int nodes, double cpus_per_node, int64_t gpus_per_node);

}  // namespace renzan
