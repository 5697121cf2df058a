#include "renzan/planning/device_options.h"

#include <gtest/gtest.h>

#include "renzan/step/testing.h"

namespace renzan {
namespace {

TEST(DeviceOptions, ThreadsAreDividedWhereAGpuComputesWholeSteps) {
  TrainConfig config = SmallConfig();
  const auto pool_and_readers = [&](int workers, int threads) {
    const int pool = PoolThreads(TestSpec(config), workers, threads);
    return std::pair(pool, BatchReaders(TestSpec(config), workers, pool));
  };
  EXPECT_EQ(pool_and_readers(1, 16), std::pair(16, 1)) << "on processors";
  config.device = "cuda";
  for (const auto& [threads, pool, readers] :
       {std::tuple{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {15, 7, 7}, {16, 8, 8}, {32, 24, 8}})
    EXPECT_EQ(pool_and_readers(1, threads), std::pair(pool, readers)) << threads;
  EXPECT_EQ(pool_and_readers(2, 16), std::pair(16, 1)) << "tables are in the host's memory";
  config.optimizer.max_gradient_norm = 1;
  EXPECT_EQ(pool_and_readers(1, 16), std::pair(16, 1)) << "so they are here";
}

// The kernels compute the gradient of the plain loss.
TEST(DeviceOptions, LossesThatAGpuDoesNotComputeAreRefused) {
  TrainConfig plain = SmallConfig();
  plain.device = "cuda";
  DatasetSchema weighted = TestSchema();
  weighted.weight = "w";
  TrainConfig positives = plain, smooth = plain;
  positives.training.loss.pos_weight = 3;
  TrainConfig normalized = plain, squared = plain;
  squared.model.outputs["label"].loss = "squared_error";
  normalized.model.normalization = "batch";
  smooth.training.loss.label_smoothing = 0.1;
  const auto refusal = [](const TrainConfig& config, const DatasetSchema& schema) -> std::string {
    const RunSpec spec = TestSpec(config, schema);
    const ShardingPlan plan = PlanOf(spec, Topology::OneHost(1), 1);
    const ShardMap map(spec.tables, plan, 1, 0, spec.numerics.virtual_workers, spec.numerics.batch);
    try {
      DeviceOptionsOf(spec, map);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(plain, TestSchema()), "");
  EXPECT_EQ(refusal(positives, TestSchema()),
            "device: cuda does not support training.loss.pos_weight: use device: cpu");
  EXPECT_EQ(refusal(normalized, TestSchema()),
            "device: cuda does not support model.normalization: batch: use device: cpu");
  EXPECT_EQ(refusal(smooth, TestSchema()),
            "device: cuda does not support training.loss.label_smoothing: use device: cpu");
  EXPECT_EQ(
      refusal(squared, TestSchema()),
      "device: cuda does not support model.outputs.NAME.loss: squared_error: use device: cpu");
  EXPECT_EQ(refusal(plain, weighted),
            "device: cuda does not support training data with sample weights: use device: cpu");
  DatasetSchema bags = TestSchema();
  bags.categorical[3].weights = "relevance";
  EXPECT_EQ(refusal(plain, bags),
            "device: cuda does not support bags with weights, which table 'n' has: use device: "
            "cpu");
}

}  // namespace
}  // namespace renzan
