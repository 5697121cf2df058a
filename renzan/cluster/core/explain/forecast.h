#pragma once

// When will a pending job start, if nothing happens but that running jobs end? Pure functions.

#include <optional>

#include "renzan/cluster/core/explain/cycle_budget.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Forecast {
  TimeMs start;
  // Running jobs that had to end before, and how many of their ends nothing was known about.
  int ends_awaited = 0, ends_assumed = 0;
};

// Where a job's end is not known (Job::expected_end) it is taken to run as long again as it has run
// already, and at least a minute: without knowledge the best single guess for what has no typical
// length. Jobs that start on the way are taken to run for an hour. None: after so many ends
// (`max_ends`) it still would not run, nothing that ends would help, or the budget is spent.
std::optional<Forecast> ForecastStart(const Snapshot& snapshot, JobId job,
                                      const ScheduleOptions& options, CycleBudget& budget,
                                      int max_ends = 200);

}  // namespace renzan::cluster
