// The scheduler on small clusters, where rights show: one to six nodes, few and long jobs, of which
// often none saves its work, mixed priorities, guarantees beside queues that only borrow. Every
// cycle is validated: no job waits for room that is its by right. RENZAN_TEST_SEEDS=FIRST..LAST
// replaces the default seeds; a failure names its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/core/testing/random_snapshot.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

constexpr int64_t kGpusOfNode = 8;

// Log-uniform.
TimeMs Time(Draws& draws, TimeMs least, TimeMs most) {
  const double part = static_cast<double>(draws.Between(0, 1'000'000)) / 1e6;
  return std::llround(static_cast<double>(least) *
                      std::pow(static_cast<double>(most) / static_cast<double>(least), part));
}

Snapshot SmallCluster(Draws& draws) {
  const int nodes = static_cast<int>(draws.Between(1, 6));
  Snapshot cluster;
  cluster.pools = {{.name = "own",
                    .capacity = {.amount = {64'000, 65'536, kGpusOfNode}},
                    .min_nodes = nodes,
                    .max_nodes = nodes}};
  int64_t left = nodes * kGpusOfNode;
  const int queues = static_cast<int>(draws.Between(1, 4));
  for (int queue = 0; queue < queues; ++queue) {
    cluster.queues.push_back({.name = std::to_string(queue)});
    if (draws.Chance(0.4)) continue;
    const int64_t guaranteed = draws.Between(0, left);
    cluster.queues.back().guaranteed[kGpu] = guaranteed;
    left -= guaranteed;
  }
  return cluster;
}

Workload FewLongJobs(Draws& draws, const Snapshot& cluster) {
  const double saving = draws.Chance(0.5) ? 0 : 0.5, urgent = draws.Chance(0.5) ? 0 : 0.3;
  const TimeMs longest = Time(draws, 6 * kHour, 30 * 24 * kHour);
  const int64_t gpus = cluster.pools[0].max_nodes * kGpusOfNode;
  Workload jobs;
  TimeMs now = 0;
  for (int64_t job = draws.Between(3, 60); job > 0; --job) {
    now += Time(draws, kSecond, longest / 8);
    WorkloadJob next{
        .submitted = now,
        .queue = std::to_string(draws.Between(0, static_cast<int64_t>(cluster.queues.size()) - 1)),
        .priority = draws.Chance(urgent) ? static_cast<int>(draws.Between(1, 3)) : 0,
        .work_ms = Time(draws, kMinute, longest),
        .checkpoints = draws.Chance(saving)};
    const int64_t size = std::min(gpus, int64_t{1} << draws.Between(0, 6));
    const Gang gang = SplitIntoGang(size, kGpusOfNode);
    next.per_worker = {.amount = {1'000 * gang.gpus_per_worker, 1'024 * gang.gpus_per_worker,
                                  gang.gpus_per_worker}};
    next.min_workers = next.max_workers = gang.workers;
    if (gang.workers > 1 && draws.Chance(0.2)) next.min_workers = 1;
    jobs.push_back(next);
  }
  return jobs;
}

TEST(SmallClusters, NoJobWaitsForWhatIsItsByRight) {
  const auto [first, last] = TestSeeds(149);
  for (uint64_t seed = first; seed <= last; ++seed) {
    Draws draws(seed);
    const Snapshot cluster = SmallCluster(draws);
    const Workload jobs = FewLongJobs(draws, cluster);
    const SimulationResult result =
        Simulate(cluster, jobs, *MakePolicy("renzan", seed, {}), {.check = true});
    EXPECT_TRUE(result.never_ended.empty()) << "seed " << seed;
    ASSERT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
