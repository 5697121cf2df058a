#pragma once

// Which small change would start a waiting job at once? Every change is tried in a copy of the
// snapshot by a whole pass of the scheduler, so that what is said is true. Pure functions.

#include <string>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// At most five sentences, smallest change first: what the job itself could ask less of, then what
// others could give, then what could be bought. At most `max_trials` passes.
std::vector<std::string> ChangesThatStart(const Snapshot& snapshot, JobId job,
                                          const ScheduleOptions& options, int max_trials = 150);

}  // namespace renzan::cluster
