// Running statistics of batch normalization after a step: what optimizers, clipping, weight decay
// and 16-bit wires do to parameters leaves them alone.

#include <gtest/gtest.h>

#include <set>

#include "renzan/comm/testing.h"
#include "renzan/saving/snapshot.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

TrainConfig WithBatchNorm() {
  TrainConfig config = SmallConfig();
  config.model.type = "deepfm";
  config.model.top_mlp = {6, 5};
  config.model.normalization = "batch";
  return config;
}

// The running statistics after a step, in the order of the layout.
std::vector<float> Train(const TrainConfig& config, int world) {
  std::vector<float> statistics;
  RunRanksAsThreads(world, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(1);
    model.Run(MakeSlice(model, 0), 0, metrics);
    if (comm.rank() != 0) return;
    for (const Parameter& each : model.model().layout().parameters())
      if (each.is_statistic())
        for (int64_t i = 0; i < each.size; ++i)
          statistics.push_back(model.parameters()[static_cast<size_t>(each.offset + i)]);
  });
  return statistics;
}

// After one step from mean 0 and variance 1, what the virtual workers observed is known.
TEST(RunningStatistics, FollowTheMeanOverVirtualWorkers) {
  TrainConfig config = WithBatchNorm();
  const std::vector<float> of_all = Train(config, 1);
  ASSERT_EQ(of_all.size(), 2 * (6 + 5u));
  // The first layer's sums do not depend on how the samples are divided: nor does their mean.
  config.numerics.virtual_workers = 1;
  const std::vector<float> of_one = Train(config, 1);
  bool moved = false;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(of_all[i], of_one[i], 1e-6);
    moved |= std::abs(of_all[i]) > 1e-3f;
  }
  EXPECT_TRUE(moved);
  for (size_t i = 6; i < 12; ++i) {
    EXPECT_GT(of_all[i], 0.9f);
    EXPECT_NE(of_all[i], of_one[i]);  // variances within virtual workers
    EXPECT_NEAR(of_all[i], of_one[i], 0.1);
  }
}

TEST(RunningStatistics, AreChangedByNothingElse) {
  const TrainConfig plain = WithBatchNorm();
  const std::vector<float> expected = Train(plain, 1);
  for (const char* optimizer : {"adagrad", "adam"}) {
    TrainConfig config = plain;
    config.optimizer.dense.type = optimizer;
    config.optimizer.dense.weight_decay = 0.5;
    config.optimizer.max_gradient_norm = 1e-3;
    for (const char* wire : {"fp32", "fp16", "bf16"}) {
      config.comm.dense = wire;
      EXPECT_EQ(Train(config, 1), expected) << optimizer << ", " << wire;
      EXPECT_EQ(Train(config, 3), expected) << optimizer << ", " << wire;
    }
  }
}

TEST(RunningStatistics, HaveNoOptimizerStates) {
  TrainConfig config = WithBatchNorm();
  config.optimizer.dense.type = "adam";
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, TestSchema(), comm, pool);
    const ModelSnapshot snapshot(model.Updated(), {.with_dense = true});
    std::set<std::string> keys;
    for (const TensorSource& tensor : snapshot.files()[0].tensors) keys.insert(tensor.key);
    EXPECT_TRUE(keys.contains("deep.0.norm.running_var"));
    EXPECT_FALSE(keys.contains("deep.0.norm.running_var/adam_m"));
    EXPECT_TRUE(keys.contains("deep.0.norm.gamma/adam_m"));
  });
}

}  // namespace
}  // namespace renzan
