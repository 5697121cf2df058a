#include "renzan/cluster/simulate/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/simulate/picture.h"
#include "renzan/cluster/simulate/report.h"

namespace renzan::cluster::simulate {
namespace {

TEST(Summarize, PercentilesAreValuesThatOccurred) {
  std::vector<double> values;
  for (int value = 200; value >= 1; --value) values.push_back(value);
  const Distribution all = Summarize(values);
  EXPECT_EQ(all.count, 200);
  EXPECT_EQ(all.mean, 100.5);
  EXPECT_EQ(all.p50, 100);
  EXPECT_EQ(all.p90, 180);
  EXPECT_EQ(all.p99, 198);
  EXPECT_EQ(all.max, 200);
  EXPECT_EQ(Summarize({7}).p99, 7);
  EXPECT_EQ(Summarize({}).mean, 0);
}

// Two nodes of two GPUs; jobs 1 and 2 have one GPU on each, job 3 wants a whole node.
SimulationResult Fragmented() {
  Resources capacity;
  capacity[kGpu] = 2;
  Snapshot cluster;
  cluster.pools = {{.name = "own", .capacity = capacity, .min_nodes = 2, .max_nodes = 2}};
  cluster.pools[0].price_per_hour = 3;
  cluster.queues = {{.name = "a<b"}};
  WorkloadJob job{.queue = "a<b", .work_ms = 3'600'000};
  job.per_worker[kGpu] = 1;
  Workload jobs = {job, job, job};
  jobs[2].per_worker[kGpu] = 2;
  const auto spread = MakeScheduler([](const Snapshot& snapshot) {
    Decisions decisions;
    for (const Job& job : snapshot.jobs)
      if (job.state == JobState::kPending && job.eligible_at != kNever &&
          (job.id < 3 || snapshot.now > 0))
        decisions.starts.push_back({job.id, {{job.id == 2 ? 1 : 0, 1}}});
    return decisions;
  });
  return Simulate(cluster, jobs, *spread);
}

TEST(Measure, CountsIdleAndFragmentedGpus) {
  const Metrics metrics = Measure(Fragmented());
  EXPECT_EQ(metrics.makespan_s, 7200);
  // Four GPUs for two hours; half of them were busy.
  EXPECT_EQ(metrics.useful_gpu_s, 4 * 3600);
  EXPECT_EQ(metrics.utilisation, 0.5);
  // In the first hour job 3 waited while two GPUs were free on different nodes.
  EXPECT_EQ(metrics.idle_while_waiting, 0.25);
  EXPECT_EQ(metrics.fragmentation, 1);
  EXPECT_EQ(metrics.cost, 12);
  ASSERT_EQ(metrics.by_size.size(), 5u);
  EXPECT_EQ(metrics.by_size[0].waiting.count, 2);
  EXPECT_EQ(metrics.by_size[1].waiting.mean, 3600);
  EXPECT_EQ(metrics.completion.max, 7200);
}

TEST(Report, HasAColumnForEachPolicy) {
  const Metrics metrics = Measure(Fragmented());
  const std::string table = WriteTable({{"one", metrics}, {"two", metrics}});
  EXPECT_THAT(table, testing::HasSubstr("one  "));
  EXPECT_THAT(table, testing::ContainsRegex("utilisation +50.00 % +50.00 %\n"));
  EXPECT_THAT(WriteJson({{"one", metrics}}), testing::HasSubstr("\"utilisation\": 0.5"));
  EXPECT_EQ(FormatSeconds(99), "99.0s");
  EXPECT_EQ(FormatSeconds(750), "12.5m");
  EXPECT_EQ(FormatSeconds(11520), "3.2h");
  EXPECT_EQ(FormatSeconds(864000), "10.0d");
}

TEST(Picture, ShowsEveryQueueAndEscapesNames) {
  const std::string svg = DrawTimeline(Fragmented(), "a & b");
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, testing::HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, testing::HasSubstr("job 3: 2 GPUs, waited 60.0m"));
  EXPECT_THAT(svg, testing::HasSubstr(">2-7 GPUs</text>"));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr(">8 GPUs</text>"))) << "there are none";
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
}

}  // namespace
}  // namespace renzan::cluster::simulate
