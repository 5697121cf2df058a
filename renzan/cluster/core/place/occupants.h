#pragma once

// Running jobs by the nodes they stand on, and what their going would cost. Made once a cycle. Not
// thread-safe.

#include <span>
#include <vector>

#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// GPU-seconds that are lost when the job is stopped now: the work that it repeats, and what saving
// and starting again take. A job without GPUs counts a hundredth of its cores.
double CostOfStopping(const Job& job, const Snapshot& snapshot);

class Occupants {
 public:
  struct Tenant {
    int job;  // in Snapshot::jobs
    int workers;
  };

  explicit Occupants(const ClusterView& view);

  // Running jobs with workers on the node that have not been told to leave.
  std::span<const Tenant> On(int node) const {
    return {tenants_.data() + first_[node], tenants_.data() + first_[node + 1]};
  }
  // Told to leave, or to move, in this cycle: no longer to be counted on.
  bool leaving(int job) const { return leaving_[job]; }
  void Leave(int job) { leaving_[job] = true; }
  double cost(int job) const { return cost_[job]; }
  // All running jobs.
  const std::vector<int>& jobs() const { return jobs_; }

 private:
  std::vector<int> first_;  // of each node in tenants_
  std::vector<Tenant> tenants_;
  std::vector<int> jobs_;
  std::vector<double> cost_;
  std::vector<bool> leaving_;
};

}  // namespace renzan::cluster
