#pragma once

// How much of this machine's processors this process may use: its affinity mask (taskset, mpirun's
// binding, Slurm) and the CPU quota of its cgroups (containers, Kubernetes' limits), of version 1
// or 2. Thread-safe.

#include <limits>
#include <string>

namespace renzan {

struct CpuBudget {
  int allowed = 1;                                         // CPUs in the affinity mask
  std::string allowed_list;                                // "0-3,8"
  double quota = std::numeric_limits<double>::infinity();  // CPUs' worth of time per second
  std::string cgroup;  // whose quota that is, a directory; empty without a quota
};

// `root` is prefixed to every path that is read, for tests. What cannot be read limits nothing.
CpuBudget ReadCpuBudget(const std::string& root = "");

// Threads that can run all the time: at least 1. Half a CPU of quota is no CPU: a team in which one
// thread is throttled waits for it at every step.
int UsableCpus(const CpuBudget& budget);

// The same for one of several processes that share the mask and the quota.
int UsableCpus(const CpuBudget& budget, int sharing_allowed, int sharing_quota);

}  // namespace renzan
