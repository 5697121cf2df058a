#include "renzan/cluster/core/order/gittins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

TEST(Gittins, IsTheServiceIfNothingIsKnown) {
  EXPECT_EQ(GittinsService({}, 0), 0);
  EXPECT_EQ(GittinsService({}, kHour), kHour);
}

// Nine in ten need exactly an hour; the tenth of the service that goes to the others is wasted.
TEST(Gittins, IsTheRunTimeIfItIsKnown) {
  RunTimeQuantiles quantiles;
  quantiles.fill(kHour);
  EXPECT_EQ(GittinsService(quantiles, 0), std::llround(kHour / 0.9));
  EXPECT_EQ(GittinsService(quantiles, kHour / 2), std::llround(kHour / 0.9));
  EXPECT_EQ(GittinsService(quantiles, 5 * kHour), 5 * kHour);
}

// Three in four end within a minute: a job that has not is one of the long ones.
TEST(Gittins, AJobThatOutlivesTheShortOnesIsALongOne) {
  const RunTimeQuantiles quantiles = {kMinute, kMinute, kMinute, kMinute, 100 * kHour};
  EXPECT_LT(GittinsService(quantiles, kMinute - 1), 2 * kMinute);
  EXPECT_GT(GittinsService(quantiles, kMinute), 50 * kHour);
}

// Compares with sums over a sample of the distribution, for every amount of service up to a
// quantile.
TEST(Gittins, IsTheBestRatioOfServiceToChance) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    RunTimeQuantiles quantiles;
    for (TimeMs& time : quantiles)
      time = std::llround(std::exp(std::uniform_real_distribution<>(7, 20)(random)));
    std::sort(quantiles.begin(), quantiles.end());
    // One in ten ends at the first quantile, one in ten later than the last.
    constexpr int kJobs = 10'000;
    std::vector<double> ends;
    for (int job = 0; job < kJobs; ++job) {
      const float at = (static_cast<float>(job) + 0.5F) / kJobs;
      const auto above = std::upper_bound(kQuantiles.begin(), kQuantiles.end(), at);
      const size_t next = static_cast<size_t>(above - kQuantiles.begin());
      if (next == 0 || next == kQuantiles.size()) {
        ends.push_back(next == 0 ? static_cast<double>(quantiles[0]) : HUGE_VAL);
        continue;
      }
      const double part = (at - kQuantiles[next - 1]) / (kQuantiles[next] - kQuantiles[next - 1]);
      const auto low = static_cast<double>(quantiles[next - 1]);
      ends.push_back(low * std::pow(static_cast<double>(quantiles[next]) / low, part));
    }
    double best = HUGE_VAL;
    for (const TimeMs until : quantiles) {
      double service = 0;
      int ended = 0;
      for (const double end : ends) {
        service += std::min(end, static_cast<double>(until));
        ended += end <= static_cast<double>(until);
      }
      best = std::min(best, service / ended);
    }
    EXPECT_NEAR(static_cast<double>(GittinsService(quantiles, 0)) / best, 1, 0.01) << trial;
  }
}

TEST(Gittins, OnlyRises) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    RunTimeQuantiles quantiles;
    for (TimeMs& time : quantiles) time = std::uniform_int_distribution<>(0, 1000)(random);
    std::sort(quantiles.begin(), quantiles.end());
    TimeMs last = 0;
    for (TimeMs service = 0; service < 1100; ++service) {
      const TimeMs now = GittinsService(quantiles, service);
      EXPECT_GE(now, std::max(last, service));
      last = now;
    }
  }
}

class GittinsOrder : public ScheduleTest {};

// Of two new jobs the one that is likely to be shorter goes first.
TEST_F(GittinsOrder, TheJobThatIsLikelyToBeShortGoesFirst) {
  Nodes(1);
  const JobId long_one = Add({.gpus = 8});
  snapshot.Find(long_one)->run_time.fill(20 * kHour);
  const JobId short_one = Add({.gpus = 8});
  snapshot.Find(short_one)->run_time.fill(kMinute);
  EXPECT_THAT(Started(Run()), testing::ElementsAre(long_one));
  EXPECT_THAT(Started(Schedule(snapshot, {.levels = {.gittins = true}})),
              testing::ElementsAre(short_one));
}

// The service that it counts as may jump there.
TEST_F(GittinsOrder, LooksAgainWhenAJobOutlivesAQuantile) {
  Nodes(1);
  Add({.gpus = 8});
  snapshot.jobs.back().run_time = {kMinute, kMinute, kHour / 2, 30 * kHour, 40 * kHour};
  Add({.gpus = 8});
  const Decisions decisions = Schedule(snapshot, {.levels = {.gittins = true}});
  EXPECT_EQ(decisions.look_again, kNow + kMinute);
}

}  // namespace
}  // namespace renzan::cluster
