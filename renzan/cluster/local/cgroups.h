#pragma once

// Which control groups jobs get on this machine, by the cluster's configuration.

#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

// Logs whether processes are held, and why not. Throws Error kConfig if a limit is wanted that this
// process cannot set.
AttemptPlan::Cgroups FindCgroups(const spec::ClusterConfig::CgroupsConfig& config);

}  // namespace renzan::cluster::local
