#pragma once

// Learning rate schedules: DLRM's (linear warm-up from 0, constant, polynomial decay to a floor),
// the same with a cosine as decay, and one cycle. What evaluations do to the rates is in
// quality/plateau.h.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/config/optimizer_config.h"

namespace renzan {

// Replaces a decay until the end of the run (-1) with the number of steps of a run of `steps`
// steps.
ScheduleConfig ScheduleOfRun(ScheduleConfig schedule, int64_t steps);

// The functions below take schedules that ScheduleOfRun() returned.

// In [0, 1]; `step` counts from 0.
double LearningRateFactor(const ScheduleConfig& schedule, int64_t step);

// "learning rates of 0.1 (dense) and 0.05 (tables)", for a step.
std::string DescribeLearningRates(const OptimizerConfig& optimizer, int64_t step,
                                  double plateau_factor);

// What a user may not expect of a run of `steps` steps that begins or continues at step `first`,
// one sentence each.
std::vector<std::string> ScheduleWarnings(const ScheduleConfig& schedule, int64_t first,
                                          int64_t steps);

}  // namespace renzan
