#pragma once

// Who must give way to whom? Pure functions.
//
// Nobody is stopped but for a job of higher rank (entitlement.h). Inside a queue that is all.
// Between queues the one that gives way must have borrowed: it gives back what another queue is
// guaranteed, or what a job of higher priority wants to borrow. The workers that an elastic job has
// beyond its minimum yield to equal priority too. Who was backfilled into a reservation yields to
// the job that it is for, and everybody to the grand challenge.

#include <optional>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/order/entitlement.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Preemptor {
  const Job* job;
  bool takes_back;       // within quota by its queue's guarantee, which it does not exceed
  bool has_reservation;  // or will have, as the first that cannot start
};

class Rights {
 public:
  explicit Rights(const Entitlement& entitlement) : entitlement_(entitlement) {}

  // By what right the preemptor may have `victim` stopped; none if it may not. `quota` says what
  // queues have once those who were chosen before have gone.
  std::optional<StopReason> ToStop(const Preemptor& preemptor, const Job& victim,
                                   const Quota& quota) const;

  // May the preemptor have workers that the victim has beyond its minimum?
  bool ToShrink(const Preemptor& preemptor, const Job& victim, const Quota& quota) const;

 private:
  const Entitlement& entitlement_;
};

}  // namespace renzan::cluster
