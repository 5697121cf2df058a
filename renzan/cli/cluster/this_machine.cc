#include "renzan/cli/cluster/this_machine.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "renzan/base/cpus.h"

namespace renzan {
namespace {

// /dev/nvidia0, /dev/nvidia1, ... and not /dev/nvidiactl.
int64_t CountGpus() {
  int64_t gpus = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    const std::string number = name.starts_with("nvidia") ? name.substr(6) : "";
    gpus += !number.empty() && std::all_of(number.begin(), number.end(),
                                           [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return gpus;
}

int64_t MemoryMebibytes() {
  return (static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)) >> 20;
}

}  // namespace

cluster::spec::ClusterConfig ThisMachine(int nodes, double cpus_per_node, int64_t gpus_per_node) {
  cluster::spec::ClusterConfig config;
  cluster::spec::ClusterConfig::PoolConfig& pool = config.pools["local"];
  pool.nodes = fmt::format("{}", nodes);
  const double cores = UsableCpus(ReadCpuBudget());
  pool.resources.cpu = cpus_per_node < 0 ? cores / nodes : cpus_per_node;
  pool.resources.memory = fmt::format("{}MiB", MemoryMebibytes() / nodes);
  pool.resources.gpu = gpus_per_node >= 0 ? gpus_per_node : nodes == 1 ? CountGpus() : 0;
  return config;
}

}  // namespace renzan
