#pragma once

// Running jobs by node, and what it would cost to stop them. Built once per scheduling cycle. Not
// thread-safe.

#include <span>
#include <vector>

#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

// GPU-seconds lost if the job is stopped now: work to repeat, and time to save and restart. For a
// job without GPUs, a core counts as a hundredth of a GPU.
double CostOfStopping(const Job& job, const Snapshot& snapshot);

class Occupants {
 public:
  struct Tenant {
    int job;  // in Snapshot::jobs
    int workers;
  };

  explicit Occupants(const ClusterView& view);

  // Running jobs with workers on the node.
  std::span<const Tenant> On(int node) const {
    return {tenants_.data() + first_[node], tenants_.data() + first_[node + 1]};
  }
  // Whether this cycle has already decided to stop or resize the job.
  bool leaving(int job) const { return leaving_[job]; }
  void Leave(int job) { leaving_[job] = true; }
  double cost(int job) const { return cost_[job]; }
  // All running jobs.
  const std::vector<int>& jobs() const { return jobs_; }

 private:
  std::vector<int> first_;  // index of each node's first entry in tenants_
  std::vector<Tenant> tenants_;
  std::vector<int> jobs_;
  std::vector<double> cost_;
  std::vector<bool> leaving_;
};

}  // namespace renzan::cluster
