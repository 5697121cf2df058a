#pragma once

// By which right one pending job goes before another (core/order/pending_queue.h). Not thread-safe.

#include <map>
#include <optional>
#include <set>

#include "renzan/cluster/core/order/pending_queue.h"
#include "renzan/cluster/core/order/quota.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/place/view.h"
#include "renzan/cluster/core/schedule.h"

namespace renzan::cluster::simulate {

class Precedence {
 public:
  // `decisions`: of the cycle on this snapshot.
  Precedence(const Snapshot& snapshot, const Decisions& decisions, const ScheduleOptions& options);

  // The right by which `other` was considered before `job`: "of higher priority"; none if `job` was
  // considered first.
  std::optional<const char*> RightOf(const Job& other, const Job& job) const;

 private:
  bool IsOverdue(const Job& job) const;
  void ExchangeTurns();
  Turn TurnOf(const Job& job) const;
  // Whether no overdue job was served, or only this one.
  bool NoOverdueServedBut(const Job& job) const;

  const Snapshot& snapshot_;
  const TimeMs overdue_after_;
  const ClusterView view_;
  const Quota quota_;
  Ranks ranks_;
  std::map<JobId, Turn> turns_;     // in queues with fair share
  std::set<JobId> room_is_made_;    // for these
  std::set<JobId> overdue_served_;  // once one is, the others have their usual places
};

}  // namespace renzan::cluster::simulate
