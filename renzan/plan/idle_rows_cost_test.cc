#include "renzan/plan/idle_rows_cost.h"

#include <gtest/gtest.h>

#include <cmath>

namespace renzan {
namespace {

constexpr IdleRowSteps kDecaying = {.move = true, .decays = true, .step_flops = 10, .interval = 64};
constexpr MovingRows kRows = {.rows = 1000, .looked_up = 100, .columns = 8, .bytes = 96};

TEST(IdleRowsCost, CountsTheStepsOfRowsThatNoSampleLooksUp) {
  const IdleRowsCost cost = CostOfIdleRows(kDecaying, kRows);
  EXPECT_DOUBLE_EQ(cost.flops, 900 * 8 * 10);
  // Every 64th step, all rows are read and written, and four times their counters.
  EXPECT_DOUBLE_EQ(cost.stream_bytes, 1000 / 64.0 * (2 * 96 + 4 * 4));
  // A tenth of the rows was looked up by the step before.
  EXPECT_DOUBLE_EQ(cost.row_bytes, 90 * 2 * 96);
}

TEST(IdleRowsCost, GrowsWithTheRows) {
  MovingRows more = kRows;
  more.rows *= 10;
  const IdleRowsCost few = CostOfIdleRows(kDecaying, kRows), many = CostOfIdleRows(kDecaying, more);
  EXPECT_DOUBLE_EQ(many.flops, few.flops * 9900 / 900);
  EXPECT_DOUBLE_EQ(many.stream_bytes, 10 * few.stream_bytes);
}

TEST(IdleRowsCost, WithoutDecayRowsStandStillAfterAWhile) {
  const IdleRowSteps steps = {
      .move = true, .step_flops = 10, .fading_flops = 1, .steps_to_still = 20, .interval = 64};
  const double changing = 900 * (1 - std::pow(0.9, 20));
  EXPECT_DOUBLE_EQ(CostOfIdleRows(steps, kRows).flops, 8 * (10 * changing + (900 - changing)));
}

TEST(IdleRowsCost, IsNothingWhereTheyStay) {
  EXPECT_EQ(CostOfIdleRows({}, kRows).flops, 0);
  EXPECT_EQ(CostOfIdleRows({}, kRows).stream_bytes, 0);
  EXPECT_EQ(CostOfIdleRows(kDecaying, {}).flops, 0);
  // All rows are looked up.
  const IdleRowsCost busy = CostOfIdleRows(kDecaying, {.rows = 5, .looked_up = 9, .columns = 8});
  EXPECT_EQ(busy.flops, 0);
  EXPECT_EQ(busy.row_bytes, 0);
}

}  // namespace
}  // namespace renzan
