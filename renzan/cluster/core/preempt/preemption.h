#pragma once

// Preemption within one scheduling cycle: combines who may preempt whom (rights.h) with the search
// for victims (victims.h). Not thread-safe.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "renzan/cluster/core/failures.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/place/occupants.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/preempt/rights.h"
#include "renzan/cluster/core/preempt/victims.h"

namespace renzan::cluster {

class Preemption {
 public:
  Preemption(const ClusterView& view, const Occupants& occupants, const Ranks& ranks);

  const Rights& rights() const { return rights_; }
  const Ranks& ranks() const { return ranks_; }
  // The packing kind that its possible victims hold, and where they run.
  struct Reach {
    int64_t amount = 0;
    VictimNodes nodes;
    std::vector<bool> stops;  // by group: whether its jobs might be stopped
  };
  Reach ReachOf(const Preemptor& preemptor, const Quota& quota) const;
  // False: the preemptor may not stop the running job, whichever victims were chosen before,
  // because choosing victims only reduces its rights.
  bool MightStop(const Reach& reach, const Job& job) const {
    const int group = group_of_[&job - snapshot_.jobs.data()];
    return group >= 0 && reach.stops[group];
  }
  // The cost of stopping a job (by index) for the preemptor.
  double CostOf(const Preemptor& preemptor, int index, const Quota& quota) const;

  // The victims after whose stop the preemptor fits, in resources and in quota; none if there is no
  // such set.
  std::optional<VictimPlan> Plan(const Preemptor& preemptor, const Quota& quota);

 private:
  // Running jobs with the same preemption rights: by queue, rank, whether they yield to less
  // service, backfilled, has surplus workers, whether these yield to equals.
  using Kind = std::tuple<int, Rank, bool, bool, bool, bool>;
  struct Group {
    const Job* example;
    int64_t all = 0, surplus = 0;  // of the packing kind
    NodeSet nodes;                 // where they run
  };

  double CostBelowGuarantee(const Preemptor& preemptor, int index, const Quota& quota) const;
  // Victims in its own queue that bring the queue under its limit; none if that is impossible.
  std::optional<std::vector<int>> ForLimit(const Preemptor& preemptor, Quota quota) const;

  const ClusterView& view_;
  const Snapshot& snapshot_;
  const Occupants& occupants_;
  const Ranks& ranks_;
  const Rights rights_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;  // by position in Snapshot::jobs; -1: no possible victim
  // By request, queue, rank, reclaims, reservations that do not bind it.
  Failures<std::tuple<int, int, Rank, Reclaims, int>> failures_;
};

}  // namespace renzan::cluster
