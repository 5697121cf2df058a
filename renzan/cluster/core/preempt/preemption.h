#pragma once

// Does anybody give way so that a job fits, and who? Combines rights (rights.h) and the search for
// victims (victims.h) for one cycle. Not thread-safe.

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
  Preemption(const ClusterView& view, const Occupants& occupants, const Entitlement& entitlement);

  const Rights& rights() const { return rights_; }

  // Whoever has to go so that the preemptor's job fits, within quota too; none if that is
  // impossible or nobody has to yield to it.
  std::optional<VictimPlan> Plan(const Preemptor& preemptor, const Quota& quota);

 private:
  // Running jobs that are alike as far as rights go.
  using Kind = std::tuple<int, int, bool, bool, bool>;
  // queue, priority, backfilled, has surplus, within quota
  struct Group {
    const Job* example;
    int64_t all = 0, surplus = 0;  // of the packing kind
    NodeSet nodes;                 // where they stand
  };

  double CostOfUnsettling(const Preemptor& preemptor, int index, const Quota& quota) const;
  // The nodes of those who would have to give way. None: that cannot be enough.
  std::optional<NodeSet> PromisingNodes(const Preemptor& preemptor, const Quota& quota) const;
  // Jobs of its own queue that must go for the queue's limit; none if these are not enough.
  std::optional<std::vector<int>> ForLimit(const Preemptor& preemptor, Quota quota) const;

  const ClusterView& view_;
  const Snapshot& snapshot_;
  const Occupants& occupants_;
  const Entitlement& entitlement_;
  const Rights rights_;
  std::map<Kind, Group> groups_;
  // By request, queue, priority, within quota, Preemptor's flags.
  Failures<std::tuple<int, int, int, bool, bool, bool>> failures_;
};

}  // namespace renzan::cluster
