#pragma once

// DLRM's learning rate schedule: linear warm-up from 0, constant, polynomial decay to 0.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "renzan/config/train_config.h"

namespace renzan {

// In [0, 1], for a step counted from 0.
inline double LearningRateFactor(const ScheduleConfig& schedule, int64_t step) {
  const double s = static_cast<double>(step);
  if (step < schedule.warmup_steps) return (s + 1.0) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay_steps == 0 || step < schedule.decay_start_step) return 1.0;
  const double done = (s - static_cast<double>(schedule.decay_start_step)) /
                      static_cast<double>(schedule.decay_steps);
  return std::pow(std::max(0.0, 1.0 - done), schedule.decay_power);
}

}  // namespace renzan
