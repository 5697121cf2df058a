#pragma once

// Turns a decision to start a job into what its supervisor runs.

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/job_directories.h"

namespace renzan::cluster::local {

// Adds devices: the lowest ones of the machine that no running worker has, or of each node where
// nodes are simulated (ClusterState::machine_gpus).
NamedPlacement WithDevices(const ClusterState& state, const Placement& placement,
                           int64_t gpus_per_worker);

// Of the job's next attempt, or of the one that runs, what its time limit leaves to it; 0: none.
TimeMs TimeLimitOf(const LiveRecord& live);

// What a supervisor enforces.
struct Enforced {
  bool memory = true;        // resources.memory
  int64_t max_disk_mib = 0;  // AttemptPlan::max_disk_mib
  AttemptPlan::Cgroups cgroups = {};
  // The machine's, by their numbers in placements, to which control groups restrict each job's
  // processes.
  std::vector<dev_t> gpus = {};
};

// The plan of live.record.attempt, whose placement has devices.
AttemptPlan MakeAttemptPlan(const LiveRecord& live, const Resources& per_worker,
                            const JobDirectories& directories, const std::string& inherited_file,
                            const Enforced& enforced);

}  // namespace renzan::cluster::local
