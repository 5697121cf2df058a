#include "renzan/cluster/local/controller/pool_history.h"

#include <gmock/gmock.h>

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kHour = 3'600'000;

double Rate(double stated, TimeMs hours, int64_t interruptions) {
  return InterruptionsPerHour(
      {.stated_per_hour = stated,
       .seen = {.name = "spot", .node_ms = hours * kHour, .interruptions = interruptions}});
}

TEST(PoolHistory, StartsAtTheStatedRate) {
  EXPECT_DOUBLE_EQ(Rate(0.1, 0, 0), 0.1);
  EXPECT_DOUBLE_EQ(Rate(0.1, 10, 0), 0.05);  // the stated mean time without any
  EXPECT_DOUBLE_EQ(Rate(0.1, 10, 1), 0.1);   // as stated
  EXPECT_DOUBLE_EQ(Rate(0.1, 0, 1), 0.2);
}

TEST(PoolHistory, ConvergesToTheObservedRate) {
  EXPECT_NEAR(Rate(0.1, 100'000, 200'000), 2, 0.001);
  EXPECT_NEAR(Rate(0, 100'000, 200'000), 2, 0.001);
}

TEST(PoolHistory, OneInterruptionOnTheFirstDayIsOneADay) {
  EXPECT_EQ(Rate(0, 1000, 0), 0);
  EXPECT_DOUBLE_EQ(Rate(0, 0, 1), 1.0 / 24);
}

}  // namespace
}  // namespace renzan::cluster::local
