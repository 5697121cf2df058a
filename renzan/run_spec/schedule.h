#pragma once

// DLRM's learning rate schedule: linear warm-up from 0, constant, polynomial decay to a floor.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/config/optimizer_config.h"

namespace renzan {

// With the number of steps until the end of a run of `steps` steps instead of -1.
ScheduleConfig ScheduleOfRun(ScheduleConfig schedule, int64_t steps);

// The schedules of all that follows are runs'.

// In [0, 1], for a step counted from 0.
double LearningRateFactor(const ScheduleConfig& schedule, int64_t step);

// "learning rates of 0.1 (dense) and 0.05 (tables)": those of a step.
std::string DescribeLearningRates(const OptimizerConfig& optimizer, int64_t step);

// What a user may not expect of a run of `steps` steps that begins or goes on at step `first`: a
// sentence for each.
std::vector<std::string> ScheduleWarnings(const ScheduleConfig& schedule, int64_t first,
                                          int64_t steps);

}  // namespace renzan
