#include "renzan/cluster/core/predict/node_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

constexpr int kWeek = NodeDemand::kHoursOfWeek;

std::vector<int> Expected(const NodeDemand& demand, double share) {
  return demand.Expected(share, 1'000'000);
}

TEST(NodeDemand, CountsTheWeeksInWhichSoManyNodesWereInUse) {
  NodeDemand demand;
  const int in_use[] = {5, 0, 3, 4};
  for (int week = 0; week < 4; ++week) demand.Add(week * kWeek + 9, in_use[week]);
  EXPECT_EQ(Expected(demand, 0.25)[9], 5);
  EXPECT_EQ(Expected(demand, 0.5)[9], 4);
  EXPECT_EQ(Expected(demand, 0.75)[9], 3);
  EXPECT_EQ(Expected(demand, 1)[9], 0);
  EXPECT_EQ(Expected(demand, 0.5)[10], 0);
}

TEST(NodeDemand, DoesNotCountTheHourThatHasNotEnded) {
  NodeDemand demand;
  for (int week = 0; week < 2; ++week) demand.Add(week * kWeek + 9, 5);
  demand.Add(2 * kWeek + 9, 0);
  EXPECT_EQ(demand.Expected(1, 2 * kWeek + 9)[9], 5);
  EXPECT_EQ(demand.Expected(1, 2 * kWeek + 10)[9], 0);
}

TEST(NodeDemand, KnowsNothingAfterOneWeek) {
  NodeDemand demand;
  demand.Add(9, 5);
  EXPECT_EQ(Expected(demand, 0.5)[9], 0);
}

TEST(NodeDemand, ForgetsEarlierWeeks) {
  NodeDemand demand;
  for (int64_t week = 0; week < NodeDemand::kWeeks; ++week) demand.Add(week * kWeek, 7);
  for (int64_t week = 0; week < NodeDemand::kWeeks; ++week)
    demand.Add((NodeDemand::kWeeks + week) * kWeek, 2);
  EXPECT_EQ(Expected(demand, 0.1)[0], 2);
  EXPECT_EQ(demand.hours().size(), static_cast<size_t>(NodeDemand::kWeeks));
}

TEST(NodeDemand, IsAskedForAllHoursUntilANodeHasBooted) {
  Pool pool{.max_nodes = 6};
  EXPECT_EQ(ExpectedNodes(pool, 0, kHour), 0);
  pool.expected_nodes.assign(kWeek, 0);
  pool.expected_nodes[9] = 4;
  pool.expected_nodes[10] = 8;
  EXPECT_EQ(ExpectedNodes(pool, 8 * kHour, 9 * kHour - 1), 0);
  EXPECT_EQ(ExpectedNodes(pool, 8 * kHour, 9 * kHour), 4);
  EXPECT_EQ(ExpectedNodes(pool, 8 * kHour, 12 * kHour), 6) << "at most as many as there may be";
  EXPECT_EQ(ExpectedNodes(pool, (kWeek + 9) * kHour, (kWeek + 9) * kHour), 4);
}

TEST(DemandWatch, CountsNodesSinceTheLastChange) {
  Snapshot snapshot;
  snapshot.pools = {{.name = "own"}, {.name = "cloud", .max_nodes = 9, .boot_ahead = 0.5}};
  snapshot.nodes = {{.pool = 0}, {.pool = 1}, {.pool = 1}};
  snapshot.jobs = {{.id = 1}, {.id = 2}};
  DemandWatch watch;
  watch.Observe(100 * kHour, snapshot);
  snapshot.jobs[0].state = JobState::kRunning;
  snapshot.jobs[0].placement = {{0, 1}, {1, 2}, {2, 1}};
  snapshot.jobs[1] = snapshot.jobs[0];
  watch.Observe(103 * kHour, snapshot);  // they end now
  snapshot.jobs.clear();
  watch.Observe(105 * kHour, snapshot);
  EXPECT_FALSE(watch.demand().contains(0)) << "nothing is booted ahead there";
  EXPECT_THAT(
      watch.demand().at(1).hours(),
      testing::ElementsAre(testing::Pair(100, 2), testing::Pair(101, 2), testing::Pair(102, 2),
                           testing::Pair(103, 2), testing::Pair(104, 0), testing::Pair(105, 0)));
  watch.Observe((105 + kWeek) * kHour, snapshot);
  EXPECT_EQ(watch.demand().at(1).hours().size(), 7u) << "what was between is not known";
  watch.ClockWentBack(105 * kHour);
  EXPECT_EQ(watch.demand().at(1).hours().size(), 6u) << "that was not the time";
  EXPECT_EQ(snapshot.pools[1].expected_nodes.size(), static_cast<size_t>(kWeek));
  EXPECT_TRUE(snapshot.pools[0].expected_nodes.empty());
}

}  // namespace
}  // namespace renzan::cluster
