#include "renzan/run_spec/schedule.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan {

ScheduleConfig ScheduleOfRun(ScheduleConfig schedule, int64_t steps) {
  if (schedule.ends_with_run())
    schedule.decay_steps = std::max<int64_t>(1, steps - schedule.decay_start_step);
  return schedule;
}

double LearningRateFactor(const ScheduleConfig& schedule, int64_t step) {
  CHECK(!schedule.ends_with_run());
  const double s = static_cast<double>(step);
  if (step < schedule.warmup_steps) return (s + 1.0) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay_steps == 0 || step < schedule.decay_start_step) return 1.0;
  const double done = (s - static_cast<double>(schedule.decay_start_step)) /
                      static_cast<double>(schedule.decay_steps);
  const double left = std::pow(std::max(0.0, 1.0 - done), schedule.decay_power);
  // Without a floor, this is exactly `left`.
  return schedule.decay_floor + (1.0 - schedule.decay_floor) * left;
}

std::string DescribeLearningRates(const OptimizerConfig& optimizer, int64_t step) {
  const double factor = LearningRateFactor(optimizer.schedule, step);
  return fmt::format("learning rates of {:.4g} (dense) and {:.4g} (tables)",
                     optimizer.dense.learning_rate * factor,
                     optimizer.sparse.learning_rate * factor);
}

std::vector<std::string> ScheduleWarnings(const ScheduleConfig& schedule, int64_t first,
                                          int64_t steps) {
  std::vector<std::string> warnings;
  if (first >= steps) return warnings;
  if (schedule.warmup_steps > steps)
    warnings.push_back(fmt::format(
        "optimizer.schedule.warmup_steps is {}, but the run has {}: the learning rates only "
        "reach {:.0f} % of the configured ones",
        schedule.warmup_steps, Counted(steps, "step"),
        100 * LearningRateFactor(schedule, steps - 1)));
  if (schedule.decay_steps > 0 && schedule.decay_start_step >= steps)
    warnings.push_back(
        fmt::format("optimizer.schedule.decay_start_step is {}, but the run has {}: the "
                    "learning rates do "
                    "not decay",
                    schedule.decay_start_step, Counted(steps, "step")));
  // The first step whose rate is 0.
  const int64_t end =
      std::max(schedule.decay_start_step + schedule.decay_steps, schedule.warmup_steps);
  if (schedule.decay_steps > 0 && schedule.decay_floor == 0 && end < steps)
    warnings.push_back(fmt::format(
        "the run has {}, but optimizer.schedule ends at step {} ({}): the learning rates are "
        "0 from there, and the last {} steps do not change "
        "the model; for a new run, decay_steps: -1 decays until its end, and decay_floor keeps a "
        "part of the rates",
        Counted(steps, "step"), end,
        end == schedule.warmup_steps ? "warmup_steps" : "decay_start_step + decay_steps",
        steps - std::max(first, end)));
  return warnings;
}

}  // namespace renzan
