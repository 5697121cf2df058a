#pragma once

// Whether a pending job could find room if all jobs stopped that might stop for it: those of its
// own queue, and what other queues have borrowed. Built when first asked, because it copies the
// view. Not thread-safe.

#include <map>
#include <utility>
#include <vector>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

class RoomByRight {
 public:
  // All must outlive it. `keep`: jobs of other queues that are not stopped, by position in
  // Snapshot::jobs.
  RoomByRight(const ClusterView& view, const Quota& quota, const Occupants& occupants,
              std::vector<bool> keep);

  bool IsThereFor(const Job& job);

 private:
  const ClusterView& EmptiedFor(int queue);

  const ClusterView& view_;
  const Quota& quota_;
  const Occupants& occupants_;
  const std::vector<bool> keep_;
  std::map<int, ClusterView> emptied_;     // by queue
  Failures<std::pair<int, int>> nowhere_;  // by queue and request
};

}  // namespace renzan::cluster
