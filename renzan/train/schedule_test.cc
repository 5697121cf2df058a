#include "renzan/train/schedule.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace renzan
