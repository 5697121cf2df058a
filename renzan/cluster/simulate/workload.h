#pragma once

// What is submitted in a simulation: jobs with the work that is in them, which no scheduler is
// told. Plain data and pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

struct WorkloadJob {
  TimeMs submitted = 0;
  std::string queue = "default", user = "default";
  int priority = 0;
  int min_workers = 1, max_workers = 1;
  Resources per_worker;
  Labels required;
  TimeMs work_ms = 0;  // how long it runs undisturbed with max_workers
  bool checkpoints = false;
  bool preemptible = true;
  TimeMs restart_cost_ms = 30'000;    // from a restart to where it had stopped
  TimeMs checkpoint_cost_ms = 5'000;  // from the request to stop to the end of its last checkpoint
  TimeMs grace_ms = 30'000;
  TimeMs checkpoint_interval_ms = 600'000;  // it also saves its work so often, in the background

  int64_t gpus() const { return per_worker.gpu() * max_workers; }
  bool operator==(const WorkloadJob&) const = default;
};

// Sorted by submission; jobs submitted at the same time are in the order of their source.
using Workload = std::vector<WorkloadJob>;

// How many workers of how many GPUs make up a job of `gpus`.
struct Gang {
  int workers = 1;
  int64_t gpus_per_worker = 1;
  bool operator==(const Gang&) const = default;
};
// One worker where a node can hold it; otherwise whole nodes where they divide it, and otherwise
// the largest equal parts that fit into nodes (12 GPUs on nodes of 8: 2 workers of 6).
Gang SplitIntoGang(int64_t gpus, int64_t gpus_per_node);

// CPU and memory that one GPU brings along: the least share of any request of node with GPUs, so
// that GPUs alone decide what fits. Traces do not say what else their jobs needed.
Resources ShareOfOneGpu(const Snapshot& cluster);

// The most GPUs on one node, of the nodes there are and of those that can be had.
int64_t LargestNodeGpus(const Snapshot& cluster);

enum class Quotas {
  kNone,          // no queue is guaranteed anything
  kProportional,  // all GPUs are guaranteed, to each queue by its share of the workload's GPU time
};
// Replaces the queues of `cluster` by those of the workload.
void MakeQueues(const Workload& workload, Quotas quotas, Snapshot& cluster);

}  // namespace renzan::cluster::simulate
