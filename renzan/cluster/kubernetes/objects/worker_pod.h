#pragma once

// The objects of a gang's attempt on the server: a pod for each worker, and a headless Service by
// whose name workers find each other. The launch contract is in docs/cluster.md.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster::kubernetes {

struct WorkerPlace {
  int attempt = 0;
  int rank = 0;
  int world_size = 1;
  std::string master_node;  // address of the node of rank 0
};

// A pod that nobody has bound yet.
nlohmann::json WorkerPod(const GangJob& job, const WorkerPlace& place);

// The claims that each worker's pod mounts, by name.
std::vector<std::string> ClaimsOf(const GangJob& job);

// Not needed by workers on the hosts' own network, or by a single worker.
bool NeedsService(const GangJob& job, int world_size);
nlohmann::json WorkerService(const GangJob& job);

// "JOB-ATTEMPT-RANK"
std::string PodName(const std::string& job, int attempt, int rank);
// "JOB-workers"
std::string ServiceName(const std::string& job);

}  // namespace renzan::cluster::kubernetes
