#pragma once

// The jobs of a simulation, with their work, which schedulers do not see. Plain data and pure
// functions.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::simulate {

struct WorkloadJob {
  TimeMs submitted = 0;
  std::string queue = "default", user = "default", name;
  int priority = 0;
  int min_workers = 1, max_workers = 1;
  Resources per_worker;
  Labels required;
  TimeMs work_ms = 0;  // run time with max_workers if undisturbed
  bool checkpoints = false;
  bool preemptible = true;
  TimeMs restart_cost_ms = 30'000;    // from a restart until it is back where it stopped
  TimeMs checkpoint_cost_ms = 5'000;  // from the request to stop until its work is saved
  TimeMs grace_ms = 30'000;
  TimeMs checkpoint_interval_ms = 600'000;  // of checkpoints in the background
  // After its k-th failure, the job fails again as soon as an attempt has run for fails_after[k],
  // unless it ends before.
  std::vector<TimeMs> fails_after;
  int retries = 0;  // after failures

  int64_t gpus() const { return per_worker.gpu() * max_workers; }
  bool operator==(const WorkloadJob&) const = default;
};

// Sorted by submission; jobs submitted at the same time are in the order of their source.
using Workload = std::vector<WorkloadJob>;

// The workers of a job, and the GPUs of each.
struct Gang {
  int workers = 1;
  int64_t gpus_per_worker = 1;
  bool operator==(const Gang&) const = default;
};
// One worker if a node can hold it; otherwise the largest equal parts that fit on nodes (12 GPUs on
// nodes of 8: 2 workers of 6).
Gang SplitIntoGang(int64_t gpus, int64_t gpus_per_node);

// CPU and memory per GPU: the least share of any machine type with GPUs, so that only GPUs limit
// what fits. Traces do not say what else their jobs needed.
Resources ShareOfOneGpu(const Snapshot& cluster);

// The most GPUs on one node, existing or of a pool.
int64_t LargestNodeGpus(const Snapshot& cluster);

enum class Quotas {
  kNone,          // no queue is guaranteed anything
  kProportional,  // all GPUs are guaranteed, to each queue by its share of the workload's GPU time
};
// Replaces the queues of `cluster` with those of the workload.
void MakeQueues(const Workload& workload, Quotas quotas, Snapshot& cluster);

}  // namespace renzan::cluster::simulate
