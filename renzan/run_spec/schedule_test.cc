#include "renzan/run_spec/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  // Every epoch ends with an evaluation, even if a fraction of an epoch is not a whole number of
  // steps.
  EXPECT_EQ(steps({.eval_every_epochs = 0.25}, 10),
            (Steps{3, 5, 8, 10, 13, 15, 18, 20, 23, 25, 28, 30}));
  EXPECT_EQ(steps({.eval_every_epochs = 1.5}, 7), (Steps{11, 21}));
  // At most one after each step.
  EXPECT_EQ(steps({.eval_every_epochs = 0.001}, 10).size(), 30u);
}

TEST(LearningRateFactor, DecaysToTheFloor) {
  const ScheduleConfig schedule{
      .decay_start_step = 10, .decay_steps = 10, .decay_power = 1, .decay_floor = 0.2};
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 10), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 15), 0.6);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 20), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 1000), 0.2);
}

void ExpectFactors(const ScheduleConfig& schedule, const std::vector<double>& expected) {
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, static_cast<int64_t>(step)), expected[step])
        << step;
}

// Recorded from torch.optim.lr_scheduler.CosineAnnealingLR(T_max=8, eta_min=0.1), which computes
// each rate from the last one.
TEST(LearningRateFactor, CosineIsThatOfPyTorch) {
  ExpectFactors({.type = "cosine", .decay_steps = 8, .decay_floor = 0.1},
                {1.0, 0.9657457896300791, 0.8681980515339464, 0.7222075445642905, 0.55,
                 0.3777924554357097, 0.2318019484660537, 0.134254210369921, 0.1, 0.1, 0.1});
  ExpectFactors({.type = "cosine", .warmup_steps = 2, .decay_start_step = 3, .decay_steps = 2},
                {0.5, 1, 1, 1, 0.5, 0});
}

// Recorded from torch.optim.lr_scheduler.OneCycleLR(max_lr=1.0, ...).
TEST(LearningRateFactor, OneCycleIsThatOfPyTorch) {
  ExpectFactors(
      {.type = "one_cycle", .decay_steps = 10},
      {0.040000000000000036, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631, 0.6112620219362893,
       0.38874197806371075, 0.18825834605023697, 0.049519367986526286, 4e-06});
  ExpectFactors({.type = "one_cycle",
                 .decay_steps = 10,
                 .rise_share = 0.45,
                 .start_divisor = 10,
                 .end_divisor = 100,
                 .curve = "linear"},
                {0.1, 0.3571428571428571, 0.6142857142857142, 0.8714285714285713,
                 0.9091818181818182, 0.7275454545454545, 0.5459090909090909, 0.3642727272727273,
                 0.1826363636363636, 0.0010000000000000009, 0.001});
  ExpectFactors({.type = "one_cycle", .decay_steps = 7, .rise_share = 0.1},
                {0.9944154354509117, 0.8985666593464469, 0.7056447289910996, 0.46263710266697505,
                 0.22872995315964806, 0.060892969758032406, 4e-06, 4e-06});
  // The ends of what the keys allow.
  for (const double rise : {0.0, 0.5, 1.0})
    for (const int64_t steps : {1, 2, 3})
      for (int64_t step = 0; step < 5; ++step) {
        const double factor = LearningRateFactor(
            {.type = "one_cycle", .decay_steps = steps, .rise_share = rise}, step);
        EXPECT_TRUE(factor > 0 && factor <= 1) << rise << " " << steps << " " << step;
      }
}

TEST(LearningRateFactor, WithoutAFloorKeepsItsBits) {
  for (const double power : {0.5, 1.0, 2.0, 3.3})
    for (int64_t step = 0; step < 400; ++step) {
      const ScheduleConfig schedule{.decay_steps = 391, .decay_power = power};
      const double done = static_cast<double>(step) / 391.0;
      EXPECT_EQ(LearningRateFactor(schedule, step), std::pow(std::max(0.0, 1.0 - done), power));
    }
}

TEST(ScheduleOfRun, EndsWithTheRunUnlessItsEndIsGiven) {
  const ScheduleConfig to_the_end{.decay_start_step = 10, .decay_steps = -1, .decay_power = 1};
  EXPECT_EQ(ScheduleOfRun(to_the_end, 30).decay_steps, 20);
  EXPECT_DOUBLE_EQ(LearningRateFactor(ScheduleOfRun(to_the_end, 30), 20), 0.5);
  EXPECT_GT(LearningRateFactor(ScheduleOfRun(to_the_end, 30), 29), 0);
  for (int64_t step = 0; step < 5; ++step)
    EXPECT_DOUBLE_EQ(LearningRateFactor(ScheduleOfRun(to_the_end, 5), step), 1);
  EXPECT_EQ(ScheduleOfRun({.decay_steps = 7}, 30).decay_steps, 7);
  EXPECT_EQ(ScheduleOfRun({}, 30).decay_steps, 0);
}

TEST(ScheduleWarnings, SayWhatDoesNotFitTheRun) {
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  using ::testing::IsEmpty;
  EXPECT_THAT(ScheduleWarnings({}, 0, 100), IsEmpty());
  EXPECT_THAT(ScheduleWarnings({.warmup_steps = 100, .decay_steps = 100}, 0, 100), IsEmpty());
  EXPECT_THAT(ScheduleWarnings(ScheduleOfRun({.decay_steps = -1}, 100), 0, 100), IsEmpty());
  EXPECT_THAT(ScheduleWarnings({.decay_steps = 50, .decay_floor = 0.1}, 0, 100), IsEmpty());
  EXPECT_THAT(ScheduleWarnings({.decay_start_step = 10, .decay_steps = 50}, 0, 100),
              ElementsAre(HasSubstr("has 100 steps, but optimizer.schedule ends at step 60")));
  EXPECT_THAT(ScheduleWarnings({.decay_start_step = 10, .decay_steps = 50}, 0, 100),
              ElementsAre(HasSubstr("(decay_start_step + decay_steps)")));
  EXPECT_THAT(ScheduleWarnings({.warmup_steps = 70, .decay_steps = 50}, 0, 100),
              ElementsAre(HasSubstr("ends at step 70 (warmup_steps)")));
  EXPECT_THAT(
      ScheduleWarnings({.type = "one_cycle", .decay_steps = 60}, 0, 100),
      ElementsAre(HasSubstr(
          "its last learning rates, 4e-06 of the configured ones, stay for 40 steps more")));
  EXPECT_THAT(
      ScheduleWarnings(ScheduleOfRun({.type = "one_cycle", .decay_steps = -1}, 100), 0, 100),
      IsEmpty());
  // A continued run has already trained some of them.
  EXPECT_THAT(ScheduleWarnings({.decay_steps = 50}, 80, 100),
              ElementsAre(HasSubstr("the last 20 steps do not change the model")));
  EXPECT_THAT(ScheduleWarnings({.decay_steps = 50}, 100, 100), IsEmpty());
  EXPECT_THAT(ScheduleWarnings({.warmup_steps = 400}, 0, 100),
              ElementsAre(HasSubstr("only reach 25 % of the configured ones")));
  for (const int64_t decay_steps : {-1, 50})
    EXPECT_THAT(
        ScheduleWarnings(ScheduleOfRun({.decay_start_step = 100, .decay_steps = decay_steps}, 100),
                         0, 100),
        ElementsAre(HasSubstr("do not decay")));
}

}  // namespace
}  // namespace renzan
