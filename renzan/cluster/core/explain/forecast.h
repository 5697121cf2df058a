#pragma once

// When will a pending job start? Nobody knows how long jobs run, nor what will be submitted, so the
// answer is a range: when it starts in some futures that are simulated (future.h). Pure functions.

#include <array>
#include <optional>

#include "renzan/cluster/core/explain/cycle_budget.h"
#include "renzan/cluster/core/explain/future.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A third of the futures each have submissions like those of the last hour, of four hours and of a
// day: nobody knows which of these goes on.
inline constexpr std::array<TimeMs, 3> kLately = {kHour, 4 * kHour, 24 * kHour};

struct Forecast {
  // By when it starts in half of all cases, and in 9 of 10. None: not within Future::kHorizon, or
  // there was not enough budget to find out.
  std::optional<TimeMs> median, p90;
  bool out_of_cycles = false;  // in some future
  Ends ends;                   // in the median future
  std::array<double, kLately.size()> submissions_per_hour{};
};

// Uses the whole budget at most.
Forecast ForecastStart(const Snapshot& snapshot, JobId job, const ScheduleOptions& options,
                       CycleBudget& budget);

}  // namespace renzan::cluster
