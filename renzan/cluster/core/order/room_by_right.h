#pragma once

// Whether pending jobs could find room if all jobs stopped that might stop for them: those of their
// own queue that rank lower, and what other queues have borrowed. Built when first asked, because
// it copies the view. Not thread-safe.

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"

namespace renzan::cluster {

class RoomByRight {
 public:
  // All must outlive it. `keep`: by position in Snapshot::jobs, the standing of running jobs if
  // none were pending. Those within quota are not stopped for other queues.
  RoomByRight(const ClusterView& view, const Quota& quota, const Occupants& occupants,
              const Ranks& ranks, std::vector<Standing> keep);

  // Takes room for the job, beside earlier ones of its queue and of the parent's other queues;
  // false if there is none. What is free first, as the job itself will: others may have a right to
  // what it leaves.
  bool Take(const Job& job);

 private:
  using Asker = std::tuple<int, int, Rank, Reclaims>;  // family, queue, rank, reclaims
  struct Taken {
    int request;
    Placement placement;
  };

  Asker AskerOf(const Job& job) const;
  // The topmost parent of its queue, or the queue itself.
  int FamilyOf(const Job& job) const;
  bool MayStopFor(const Job& job, int index) const;
  ClusterView& EmptiedFor(const Job& job);
  ClusterView& FreeFor(int family);

  const ClusterView& view_;
  const Quota& quota_;
  const Occupants& occupants_;
  const Ranks& ranks_;
  const std::vector<Standing> keep_;
  std::map<Asker, ClusterView> emptied_;
  std::map<int, ClusterView> free_;          // by family: nothing stops
  std::map<int, std::vector<Taken>> taken_;  // by family
  Failures<std::pair<Asker, int>> nowhere_;  // by request, too
};

}  // namespace renzan::cluster
