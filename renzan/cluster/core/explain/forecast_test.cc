#include "renzan/cluster/core/explain/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/philox.h"
#include "renzan/cluster/core/order/service_levels.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

constexpr RunTimeQuantiles kUsual = {2 * kMinute, 10 * kMinute, kHour, 4 * kHour, 20 * kHour};

class ForecastTest : public ScheduleTest {
 protected:
  Forecast Of(JobId job, int cycles = 149) {
    CycleBudget budget(cycles);
    Forecast forecast = ForecastStart(snapshot, job, {}, budget);
    EXPECT_LE(forecast.median.value_or(0), forecast.p90.value_or(kNever));
    return forecast;
  }

  // Fills `count` nodes with jobs that have run for as long.
  void FullNodes(int count, TimeMs ran) {
    Nodes(count);
    for (int node = 0; node < count; ++node) {
      Add({.gpus = 8, .checkpoints = false, .on = {{node, 1}}, .ran_ms = ran});
      snapshot.jobs.back().run_time = kUsual;
      snapshot.jobs.back().submitted = kNow - 100 * kHour;
    }
  }
  JobId Waits(int64_t gpus = 8) {
    const JobId job = Add({.gpus = gpus, .checkpoints = false});
    snapshot.jobs.back().run_time = kUsual;
    return job;
  }
};

TEST_F(ForecastTest, OneJobAheadHasTheRangeOfItsRunTime) {
  FullNodes(1, kHour);
  const Forecast forecast = Of(Waits());
  const auto until = [](double share) { return kNow + RemainingQuantile(kUsual, kHour, share); };
  EXPECT_GT(*forecast.median, until(4.0 / 9));
  EXPECT_LT(*forecast.median, until(5.0 / 9));
  EXPECT_GT(*forecast.p90, until(8.0 / 9));
  EXPECT_EQ(forecast.ends.all, 1);
  EXPECT_EQ(forecast.ends.expected + forecast.ends.unlike, 0);
}

TEST_F(ForecastTest, WhatHasEndedSinceTheyWereSubmittedCounts) {
  FullNodes(1, kHour);
  const JobId job = Waits();
  const TimeMs before = *Of(job).median;
  RunTimeQuantiles tenfold = kUsual;
  for (TimeMs& each : tenfold) each *= 10;
  snapshot.jobs.front().run_time_now = tenfold;
  EXPECT_GT(*Of(job).median, kNow + RemainingQuantile(tenfold, kHour, 4.0 / 9));
  EXPECT_GT(*Of(job).median, before);
  snapshot.jobs.front().run_time_now = RunTimeQuantiles{};  // nothing is known of such jobs now
  EXPECT_EQ(*Of(job).median, before);
}

// The first of many to end is not the one with the smallest median.
TEST_F(ForecastTest, TheFirstOfManyEndsSoonerThanHalfOfEach) {
  FullNodes(30, kHour);
  const Forecast forecast = Of(Waits());
  EXPECT_LT(*forecast.median, kNow + RemainingQuantile(kUsual, kHour, 0.1));
  EXPECT_LT(*forecast.p90, kNow + LikelyRemaining(kUsual, kHour));
}

// If all end early or late together, then the first of them is as late as any other.
TEST_F(ForecastTest, JobsOfAUserRunAlikeThatWereSubmittedTogether) {
  FullNodes(30, kHour);
  const JobId job = Waits();
  const Forecast together = Of(job);
  for (int at = 0; at < 30; ++at) snapshot.jobs[at].submitted -= at * 12 * kHour;
  const Forecast apart = Of(job);
  EXPECT_LT(*apart.median, *together.median);
  EXPECT_LT(*apart.p90, *together.p90);
}

// The job that ends needs as much as the last one: this must not get its room before the first.
TEST_F(ForecastTest, BetweenCyclesRoomGoesToTheFirstThatFitsThere) {
  FullNodes(1, kHour);
  const JobId small = Waits(1), next = Waits(4), large = Waits();
  const Forecast forecast = Of(small);
  EXPECT_LT(*forecast.median, kNow + RemainingQuantile(kUsual, kHour, 5.0 / 9));
  EXPECT_EQ(Of(next).median, forecast.median) << "there is room for both";
  EXPECT_GT(*Of(large).median, *forecast.median);
}

// Many worlds in which run times are really distributed like that: for three jobs of four, the same
// share of those like it end sooner as for their user's others.
TEST_F(ForecastTest, HoldsAsOftenAsItSays) {
  constexpr int kWorlds = 300, kJobs = 5;
  int by_median = 0, by_p90 = 0;
  for (int world = 0; world < kWorlds; ++world) {
    snapshot.jobs.clear();
    snapshot.nodes.clear();
    FullNodes(kJobs, (world % 7 + 1) * kHour);
    TimeMs first = kNever;
    for (int at = 0; at < kJobs; ++at) {
      Job& job = snapshot.jobs[at];
      job.id += JobId{world} * 10;  // other draws
      const bool is_like_others = Philox::Draw(78, world, at)[0] % 4 != 0;
      const uint32_t drawn = Philox::Draw(77, world, is_like_others ? kJobs : at)[0];
      first = std::min(first, kNow + RemainingQuantile(kUsual, ProgressOf(job, kNow),
                                                       Philox::Uniform(drawn) * 0.999 + 0.0005));
    }
    Waits();
    const JobId job = snapshot.jobs.back().id += JobId{world} * 10;
    const Forecast forecast = Of(job);
    by_median += first <= *forecast.median;
    by_p90 += first <= *forecast.p90;
  }
  EXPECT_NEAR(by_median, 0.5 * kWorlds, 0.08 * kWorlds);
  EXPECT_NEAR(by_p90, 0.9 * kWorlds, 0.05 * kWorlds);
}

TEST_F(ForecastTest, CountsOnSubmissionsThatGoFirst) {
  FullNodes(4, kHour);
  const JobId job = Waits();
  const Forecast calm = Of(job);
  // Forty short jobs of higher priority two hours ago, which have all ended but four.
  for (int each = 0; each < 4; ++each) {
    Job& running = snapshot.jobs[each];
    running.submitted = kNow - 2 * kHour;
    running.priority = 5;
    running.run_time = {kMinute, 5 * kMinute, 10 * kMinute, 20 * kMinute, 30 * kMinute};
  }
  const Forecast busy = Of(job);
  EXPECT_THAT(busy.submissions_per_hour,
              testing::ElementsAre(0, (4 * 10 + 1) / 4.0, (4 * 10 + 1) / 24.0));
  EXPECT_THAT(calm.submissions_per_hour, testing::ElementsAre(0, 1 / 4.0, 1 / 24.0));
  for (Job& each : snapshot.jobs)  // the same without any submission
    each.submitted = kNow - 100 * kHour;
  EXPECT_GT(*busy.median, *Of(job).median);
}

TEST_F(ForecastTest, ALongQueueNeedsNoMoreCycles) {
  FullNodes(4, kHour);
  for (int ahead = 0; ahead < 400; ++ahead) Waits();
  const Forecast forecast = Of(Waits());
  ASSERT_TRUE(forecast.median);
  EXPECT_GT(*forecast.median, kNow + 100 * kHour);
  EXPECT_FALSE(forecast.out_of_cycles);
  EXPECT_TRUE(Of(snapshot.jobs.back().id, 20).out_of_cycles);
}

TEST_F(ForecastTest, IsTheSameEachTime) {
  FullNodes(6, kHour);
  for (int ahead = 0; ahead < 20; ++ahead) Waits(1 + ahead % 8);
  const JobId job = Waits();
  const Forecast one = Of(job), other = Of(job);
  EXPECT_EQ(one.median, other.median);
  EXPECT_EQ(one.p90, other.p90);
}

TEST_F(ForecastTest, IsNoneForAJobThatCannotStart) {
  FullNodes(1, kHour);
  snapshot.nodes[0].state = NodeState::kCordoned;
  const Forecast forecast = Of(Waits());
  EXPECT_FALSE(forecast.median || forecast.p90);
  EXPECT_FALSE(forecast.out_of_cycles);
}

}  // namespace
}  // namespace renzan::cluster
