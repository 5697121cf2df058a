#include "renzan/run_spec/schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/run/loop.h"

namespace renzan {
namespace {

TEST(LearningRateFactor, WarmsUpHoldsAndDecays) {
  const ScheduleConfig schedule{
      .warmup_steps = 4, .decay_start_step = 10, .decay_steps = 10, .decay_power = 2};
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 3), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 9), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 15), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 25), 0);
  EXPECT_DOUBLE_EQ(LearningRateFactor(ScheduleConfig{}, 1000), 1);
}

TEST(IsEvaluationStep, CountsStepsOrEpochs) {
  const auto steps = [](const TrainingConfig& config, int64_t steps_per_epoch) {
    std::vector<int64_t> found;
    for (int64_t done = 1; done <= 30; ++done)
      if (IsEvaluationStep(config, steps_per_epoch, done)) found.push_back(done);
    return found;
  };
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(steps({}, 10), Steps());
  EXPECT_EQ(steps({.eval_every = 12}, 10), (Steps{12, 24}));
  EXPECT_EQ(steps({.eval_every_epochs = 1}, 10), (Steps{10, 20, 30}));
  // Every epoch's end is an evaluation even if a fraction of an epoch is not a whole number of
  // steps.
  EXPECT_EQ(steps({.eval_every_epochs = 0.25}, 10),
            (Steps{3, 5, 8, 10, 13, 15, 18, 20, 23, 25, 28, 30}));
  EXPECT_EQ(steps({.eval_every_epochs = 1.5}, 7), (Steps{11, 21}));
  // At most after every step.
  EXPECT_EQ(steps({.eval_every_epochs = 0.001}, 10).size(), 30u);
}

}  // namespace
}  // namespace renzan
