#include "renzan/cluster/simulate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/cluster/simulate/policy.h"
#include "renzan/cluster/simulate/simulator.h"

namespace renzan::cluster::simulate {
namespace {

Snapshot Cluster(int nodes) {
  Snapshot cluster;
  for (int node = 0; node < nodes; ++node) {
    cluster.nodes.emplace_back();
    cluster.nodes.back().capacity[kGpu] = 8;
    cluster.nodes.back().capacity[kCpu] = 32000;
  }
  return cluster;
}

TEST(Generate, SameSeedSameJobs) {
  const GenerateOptions options{.jobs = 200, .seed = 7};
  EXPECT_EQ(GenerateWorkload(options, Cluster(4)), GenerateWorkload(options, Cluster(4)));
  EXPECT_NE(GenerateWorkload({.jobs = 200, .seed = 8}, Cluster(4)),
            GenerateWorkload(options, Cluster(4)));
}

TEST(Generate, HasTheRequestedLoadAndShares) {
  const Workload jobs = GenerateWorkload(
      {.jobs = 4000, .seed = 2, .load = 0.5, .elastic_share = 0.5, .checkpoint_share = 0.25},
      Cluster(8));
  double gpu_ms = 0;
  int checkpoints = 0, single = 0, elastic = 0, several = 0;
  int64_t largest = 0;
  for (const WorkloadJob& job : jobs) {
    gpu_ms += static_cast<double>(job.gpus() * job.work_ms);
    largest = std::max(largest, job.gpus());
    const bool is_elastic = job.min_workers < job.max_workers;
    EXPECT_TRUE(job.checkpoints || !is_elastic);
    if (!is_elastic) checkpoints += job.checkpoints;
    single += job.gpus() == 1;
    several += job.gpus() > 1;
    elastic += is_elastic;
    EXPECT_LE(job.per_worker.gpu(), 8);
  }
  EXPECT_NEAR(gpu_ms / static_cast<double>(jobs.back().submitted) / 64, 0.5, 0.05);
  EXPECT_EQ(largest, 32);
  EXPECT_GT(single, several);
  EXPECT_NEAR(static_cast<double>(elastic) / several, 0.5, 0.05);
  EXPECT_NEAR(static_cast<double>(checkpoints) / (4000 - elastic), 0.25, 0.05);
}

TEST(Generate, RejectsUnknownKeysAndInvalidValues) {
  EXPECT_EQ(ReadGenerateOptions("jobs=5,load=2").jobs, 5);
  for (const auto& [text, says] : {std::pair("job=5", "jobs"), std::pair("jobs=0", "out of range"),
                                   std::pair("load=fast", "load")}) {
    try {
      ReadGenerateOptions(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_THAT(error.what(), testing::HasSubstr(says));
    }
  }
}

// Jobs that grow and make room again spend little of their time on restarts.
TEST(Generate, RestartsOfElasticJobsTakeLittleTime) {
  for (const uint64_t seed : {3, 4, 5}) {
    const Workload jobs = GenerateWorkload({.jobs = 1500,
                                            .seed = seed,
                                            .load = 0.85,
                                            .median_minutes = 10,
                                            .sigma = 1.8,
                                            .queues = 1,
                                            .high_priority_share = 0,
                                            .elastic_share = 1,
                                            .checkpoint_share = 1,
                                            .restart_seconds = 60},
                                           Cluster(8));
    Snapshot cluster = Cluster(8);
    MakeQueues(jobs, Quotas::kNone, cluster);
    const SimulationResult result = Simulate(cluster, jobs, *MakePolicy("renzan", seed));
    int64_t overhead = 0, all = 0;
    int resizes = 0;
    for (const JobRecord& job : result.jobs) {
      const int64_t gpus = job.gpus_per_worker;
      overhead += job.overhead * gpus;
      all += (job.overhead + job.useful + job.lost) * gpus;
      resizes += job.resizes;
    }
    EXPECT_GT(resizes, 100) << "seed " << seed;
    EXPECT_LT(static_cast<double>(overhead), 0.01 * static_cast<double>(all)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
