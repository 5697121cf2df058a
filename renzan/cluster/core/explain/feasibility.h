#pragma once

// Could a job ever run here? Caches answers for one scheduling cycle. Not thread-safe.

#include <map>
#include <tuple>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

class Feasibility {
 public:
  explicit Feasibility(const ClusterView& view) : view_(view) {}

  // Whether WhyInfeasible() (explain.h) gives a reason.
  bool RulesOut(const Job& job);

 private:
  // How many workers the existing nodes could hold if they were empty.
  int64_t Most(int request);

  // Worker request, queue and user (-1: any), checkpoints, preemptible.
  using Key = std::tuple<int, int, int, bool, bool>;

  const ClusterView& view_;
  std::map<int, int64_t> most_;
  Failures<Key> infeasible_;
  std::map<Key, int> feasible_;  // up to this many workers
};

}  // namespace renzan::cluster
