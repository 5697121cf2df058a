#pragma once

// When will a pending job start if running jobs end and nothing else happens? Pure functions.

#include <optional>

#include "renzan/cluster/core/explain/cycle_budget.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct Forecast {
  TimeMs start;
  // How many running jobs must end first, and for how many of them the end is assumed.
  int ends_awaited = 0, ends_assumed = 0;
};

// A job without an expected end (Job::expected_end) is assumed to run for as long as half of the
// jobs like it (predict/run_times.h); one that is like no other, for an hour, or for as long again
// as so far. Nothing if the job would not start within `max_ends` ends, if no end would help, or if
// the budget is spent.
std::optional<Forecast> ForecastStart(const Snapshot& snapshot, JobId job,
                                      const ScheduleOptions& options, CycleBudget& budget,
                                      int max_ends = 200);

}  // namespace renzan::cluster
