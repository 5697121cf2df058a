#pragma once

// By which right one pending job goes before another (core/order/pending_queue.h). Not thread-safe.

#include <optional>
#include <set>

#include "renzan/cluster/core/order/entitlement.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/schedule.h"

namespace renzan::cluster::simulate {

class Precedence {
 public:
  Precedence(const Snapshot& snapshot, const ScheduleOptions& options);

  // The right by which `other` goes before `job`: "of higher priority"; none if `job` goes first.
  std::optional<const char*> RightOf(const Job& other, const Job& job) const;

 private:
  const Snapshot& snapshot_;
  const TimeMs overdue_after_;
  const ClusterView view_;
  const Quota quota_;
  const ServiceLevels levels_;
  const Entitlement entitlement_;
  std::set<JobId> room_is_made_;  // for these
};

}  // namespace renzan::cluster::simulate
