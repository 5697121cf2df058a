#pragma once

// Which job may preempt which? Pure functions.
//
// A job is only stopped for one of higher rank (rank.h). Within a queue that is the only
// rule. Between queues the victim's queue must also be borrowing: its job yields to a queue that
// reclaims its guaranteed quota, or to a job of higher priority or less service that wants to
// borrow. For less service only a job yields that loses little by it (service_levels.h). An elastic
// job's workers above its minimum also yield to equal priority, once it has run long enough for the
// restart. A backfilled job yields to the job that its nodes are reserved for, and every
// preemptible job yields to a grand challenge. Between queues of different parents, parents take
// the place of their queues (SideOf() of order/queue_tree.h).

#include <optional>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Preemptor {
  const Job* job;
  Reclaims reclaims;          // by ReclaimsOf()
  const Placement* reserved;  // the nodes that are reserved for it; null: none
  int not_binding = 0;        // Reservations::NotBinding()
};

class Rights {
 public:
  Rights(const Snapshot& snapshot, const Ranks& ranks) : snapshot_(snapshot), ranks_(ranks) {}

  // Why the preemptor may stop `victim`; nothing if it may not. `quota` no longer counts the
  // victims chosen before.
  std::optional<StopReason> ToStop(const Preemptor& preemptor, const Job& victim,
                                   const Quota& quota) const;

  // Whether the preemptor may take workers that the victim has above its minimum.
  bool ToShrink(const Preemptor& preemptor, const Job& victim, const Quota& quota) const;

 private:
  bool VictimsSideBorrows(const Job& victim, const Job& job, const Quota& quota) const;

  const Snapshot& snapshot_;
  const Ranks& ranks_;
};

}  // namespace renzan::cluster
