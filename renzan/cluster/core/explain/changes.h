#pragma once

// Which small changes would start a pending job now? Each is verified by a full scheduling cycle on
// a changed copy of the snapshot. Pure functions.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/explain/cycle_budget.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// What the cluster accepts from the submitter; nothing outside these rules is suggested.
struct SubmissionRules {
  int max_priority = std::numeric_limits<int>::max();
  bool operates = true;  // may restore nodes
  // What a worker that requests this much would get, rounded up to a worker class; nothing if it is
  // too large.
  std::function<std::optional<Resources>(const Resources&)> round_up;
};

// At most five suggestions: first what the job could request less of, then what others could give
// up, then what would cause nodes to be bought for it.
std::vector<std::string> ChangesThatStart(const Snapshot& snapshot, const Wait& wait,
                                          const ScheduleOptions& options,
                                          const SubmissionRules& rules, CycleBudget& budget);

}  // namespace renzan::cluster
