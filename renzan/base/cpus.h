#pragma once

// How many CPUs this process may use: its affinity mask (taskset, mpirun's binding, Slurm), the CPU
// quota of its cgroups (containers, Kubernetes limits), v1 or v2, and what its job has requested of
// Renzan's daemon (RENZAN_CPUS), which accounts for that without a mask or quota. Thread-safe.

#include <limits>
#include <string>

namespace renzan {

struct CpuBudget {
  int allowed = 1;                                         // CPUs in the affinity mask
  std::string allowed_list;                                // "0-3,8"
  double quota = std::numeric_limits<double>::infinity();  // CPUs' worth of time per second
  std::string cgroup;  // directory of the group with that quota; empty without a quota
  double requested = std::numeric_limits<double>::infinity();  // by a worker of a job
  std::string worker;  // identifies that worker on this machine; empty outside of jobs
};

// `root` is prefixed to every path that is read (for tests). Files that cannot be read impose no
// limit.
CpuBudget ReadCpuBudget(const std::string& root = "");

// The number of threads that can run all the time, at least 1. Fractions are rounded down: if one
// thread of a team is throttled, the others wait for it at every step.
int UsableCpus(const CpuBudget& budget);

// The same for one of several processes that share the mask, the quota, and a worker's request.
int UsableCpus(const CpuBudget& budget, int sharing_allowed, int sharing_quota,
               int sharing_requested);

}  // namespace renzan
