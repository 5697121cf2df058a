#include "renzan/cluster/simulate/workload.h"

#include <algorithm>
#include <map>

#include "renzan/base/error.h"

namespace renzan::cluster::simulate {
namespace {

// Capacities of existing nodes and of those that pools can have.
std::vector<Resources> MachineTypes(const Snapshot& cluster) {
  std::vector<Resources> types;
  for (const Node& node : cluster.nodes) types.push_back(node.capacity);
  for (const Pool& pool : cluster.pools)
    if (pool.max_nodes > 0) types.push_back(pool.capacity);
  return types;
}

int64_t MostGpus(const Snapshot& cluster) {
  int64_t gpus = 0;
  for (const Node& node : cluster.nodes)
    if (node.pool < 0 && node.state != NodeState::kGone) gpus += node.capacity.gpu();
  for (const Pool& pool : cluster.pools) gpus += pool.capacity.gpu() * pool.max_nodes;
  return gpus;
}

}  // namespace

Gang SplitIntoGang(int64_t gpus, int64_t gpus_per_node) {
  CHECK(gpus >= 1 && gpus_per_node >= 1);
  int64_t part = std::min(gpus, gpus_per_node);
  while (gpus % part != 0) --part;
  return {static_cast<int>(gpus / part), part};
}

Resources ShareOfOneGpu(const Snapshot& cluster) {
  Resources share;
  bool any = false;
  for (const Resources& machine : MachineTypes(cluster)) {
    if (machine.gpu() == 0) continue;
    for (const int kind : {kCpu, kMemory}) {
      const int64_t part = machine[kind] / machine.gpu();
      share[kind] = any ? std::min(share[kind], part) : part;
    }
    any = true;
  }
  share[kGpu] = 1;
  return share;
}

int64_t LargestNodeGpus(const Snapshot& cluster) {
  int64_t most = 0;
  for (const Resources& machine : MachineTypes(cluster)) most = std::max(most, machine.gpu());
  return most;
}

void MakeQueues(const Workload& workload, Quotas quotas, Snapshot& cluster) {
  std::map<std::string, double> gpu_time;
  double total = 0;
  for (const WorkloadJob& job : workload) {
    const double time = static_cast<double>(job.gpus()) * static_cast<double>(job.work_ms);
    gpu_time[job.queue] += time;
    total += time;
  }
  cluster.queues.clear();
  const double gpus = static_cast<double>(MostGpus(cluster));
  double before = 0;
  for (const auto& [name, time] : gpu_time) {
    Queue queue{.name = name};
    if (quotas == Quotas::kProportional && total > 0) {
      // Rounds a running sum, so that the shares add up to all GPUs.
      queue.guaranteed[kGpu] = static_cast<int64_t>(gpus * ((before + time) / total) + 0.5) -
                               static_cast<int64_t>(gpus * (before / total) + 0.5);
      before += time;
    }
    cluster.queues.push_back(queue);
  }
}

}  // namespace renzan::cluster::simulate
