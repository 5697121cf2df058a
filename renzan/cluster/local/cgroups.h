#pragma once

// Which control groups jobs get on this machine, by the cluster's configuration.

#include <sys/types.h>

#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

// `gpus` are the machine's that jobs have to be kept from unless they are given them. Logs whether
// processes are held and kept from GPUs, and why not. Throws Error kConfig if a limit is wanted
// that this process cannot set.
AttemptPlan::Cgroups FindCgroups(const spec::ClusterConfig::CgroupsConfig& config,
                                 const std::vector<dev_t>& gpus);

}  // namespace renzan::cluster::local
