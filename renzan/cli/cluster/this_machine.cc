#include "renzan/cli/cluster/this_machine.h"

#include "renzan/base/cpus.h"
#include "renzan/base/host.h"
#include "renzan/base/memory_budget.h"

namespace renzan {

cluster::spec::ClusterConfig ThisMachine(int nodes, double cpus_per_node, int64_t gpus_per_node) {
  cluster::spec::ClusterConfig config;
  cluster::spec::ClusterConfig::PoolConfig& pool = config.pools["local"];
  pool.nodes = fmt::format("{}", nodes);
  const double cores = UsableCpus(ReadCpuBudget());
  pool.resources.cpu = cpus_per_node < 0 ? cores / nodes : cpus_per_node;
  pool.resources.memory = fmt::format("{}MiB", (ReadMemoryBudget().limit >> 20) / nodes);
  pool.resources.gpu = gpus_per_node >= 0 ? gpus_per_node
                       : nodes == 1       ? std::ssize(GpuDevices())
                                          : 0;
  return config;
}

}  // namespace renzan
