#pragma once

// Which small change would start a waiting job at once? Every change is tried in a copy of the
// snapshot by a whole cycle of the scheduler, so that what is said is true. Pure functions.

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

// What the cluster takes from whoever would submit the job again: nothing else is advised.
struct SubmissionRules {
  int max_priority = std::numeric_limits<int>::max();
  // What a worker that asks for so much really gets, where there is a menu; none: larger than any.
  std::function<std::optional<Resources>(const Resources&)> round_up;
};

// At most five sentences, smallest change first: what the job itself could ask less of, then what
// others could give, then what could be bought, which has nodes bought for it.
std::vector<std::string> ChangesThatStart(const Snapshot& snapshot, const Wait& wait,
                                          const ScheduleOptions& options,
                                          const SubmissionRules& rules, CycleBudget& budget);

}  // namespace renzan::cluster
