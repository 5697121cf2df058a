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

namespace {

constexpr double kPi = 3.14159265358979323846;

// From `from` to `to` while `done` goes from 0 to 1.
double Between(const std::string& curve, double from, double to, double done) {
  if (curve == "linear") return (to - from) * done + from;
  return to + (from - to) / 2.0 * (std::cos(kPi * done) + 1.0);
}

// As torch.optim.lr_scheduler.OneCycleLR computes it, with a highest rate of 1. After the cycle,
// the last rate stays.
double OneCycle(const ScheduleConfig& schedule, int64_t step) {
  const double total = static_cast<double>(schedule.decay_steps);
  const double s = std::min(static_cast<double>(step), total - 1.0);
  const double first = 1.0 / schedule.start_divisor;
  const double top = schedule.rise_share * total - 1.0;  // the step with the highest rate
  if (s <= top) return Between(schedule.curve, first, 1.0, top == 0 ? 1.0 : s / top);
  return Between(schedule.curve, 1.0, first / schedule.end_divisor,
                 (s - top) / (total - 1.0 - top));
}

}  // namespace

double LearningRateFactor(const ScheduleConfig& schedule, int64_t step) {
  CHECK(!schedule.ends_with_run());
  const double s = static_cast<double>(step);
  if (schedule.type == "one_cycle") return OneCycle(schedule, step);
  if (step < schedule.warmup_steps) return (s + 1.0) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay_steps == 0 || step < schedule.decay_start_step) return 1.0;
  const double done = (s - static_cast<double>(schedule.decay_start_step)) /
                      static_cast<double>(schedule.decay_steps);
  if (schedule.type == "cosine")
    return Between("cosine", 1.0, schedule.decay_floor, std::min(1.0, done));
  const double left = std::pow(std::max(0.0, 1.0 - done), schedule.decay_power);
  // Without a floor, this is exactly `left`.
  return schedule.decay_floor + (1.0 - schedule.decay_floor) * left;
}

std::string DescribeLearningRates(const OptimizerConfig& optimizer, int64_t step,
                                  double plateau_factor) {
  const double factor = LearningRateFactor(optimizer.schedule, step) * plateau_factor;
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
  if (schedule.type == "one_cycle" && end < steps) {
    warnings.push_back(
        fmt::format("the run has {}, but the cycle of optimizer.schedule has {}: its last learning "
                    "rates, {:.2g} "
                    "of the configured ones, stay for {} more; decay_steps: -1 makes the cycle as "
                    "long as the run",
                    Counted(steps, "step"), end, LearningRateFactor(schedule, end),
                    Counted(steps - std::max(first, end), "step")));
    return warnings;
  }
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
