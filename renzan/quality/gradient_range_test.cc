// Gradients of pooled embeddings in float16: with a batch of 65,536 they underflow unless they are
// scaled.

#include "renzan/quality/gradient_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "renzan/comm/testing.h"
#include "renzan/embedding/testing.h"
#include "renzan/run/loop_state.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

struct Trained {
  int64_t bags = 0;            // non-empty ones; only they have gradients
  std::vector<float> updates;  // of all rows
  WireRange range;
};

// Two steps with a batch of 65,536.
Trained Train(const std::string& backward, int64_t scale) {
  TrainConfig config = SmallConfig();
  config.training.batch_size = 65536;
  config.comm.backward = backward;
  config.comm.backward_scale = scale;
  Trained trained;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<std::vector<float>> before;
    for (EmbeddingShard& shard : model.embeddings().shards())
      before.push_back(WeightsOf(*shard.store));
    std::vector<OutputMetrics> metrics(2);
    for (int64_t step = 0; step < 2; ++step) {
      const Batch slice = MakeSlice(model, step);
      model.Run(slice, step, metrics);
      for (const FeatureIds& ids : slice.categorical) {
        if (ids.offsets.empty()) trained.bags += slice.size;
        for (size_t i = 0; i + 1 < ids.offsets.size(); ++i)
          trained.bags += ids.offsets[i + 1] > ids.offsets[i];
      }
    }
    trained.range = model.embeddings().TakeGradientRange();
    for (size_t t = 0; t < before.size(); ++t) {
      const std::vector<float> after = WeightsOf(*model.embeddings().shards()[t].store);
      for (size_t i = 0; i < before[t].size(); ++i)
        trained.updates.push_back(after[i] - before[t][i]);
    }
  });
  return trained;
}

// |a - b| / |b|
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / size);
}

TEST(BackwardScale, ABatchOf65536KeepsItsGradients) {
  const Trained exact = Train("fp32", 0), scaled = Train("fp16", 0), unscaled = Train("fp16", 1);
  EXPECT_EQ(exact.range.values, 0);
  EXPECT_LT(Difference(scaled.updates, exact.updates), 1e-4);
  EXPECT_EQ(scaled.range.values, scaled.bags * 8);
  EXPECT_EQ(scaled.range.overflowed, 0);
  EXPECT_LT(scaled.range.underflowed, scaled.range.values / 1000);
  // Without scaling, most of the precision is lost.
  EXPECT_GT(Difference(unscaled.updates, exact.updates),
            10 * Difference(scaled.updates, exact.updates));
  EXPECT_GT(unscaled.range.underflowed, unscaled.range.values / 10);
  // A scale that is far too large.
  const Trained clamped = Train("fp16", int64_t{1} << 40);
  EXPECT_GT(clamped.range.overflowed, clamped.range.values / 2);
}

TEST(BackwardScale, DependsOnlyOnTheConfiguration) {
  TrainConfig config;
  config.training.batch_size = 65536;
  EXPECT_EQ(BackwardScale(config), 1);
  config.comm.backward = "bf16";
  EXPECT_EQ(BackwardScale(config), 1);
  config.comm.backward = "fp16";
  EXPECT_EQ(BackwardScale(config), 0x1p24f);
  config.training.batch_size = 65536 + 8;
  EXPECT_EQ(BackwardScale(config), 0x1p25f);
  config.training.batch_size = 1;
  EXPECT_EQ(BackwardScale(config), 256);
  config.comm.backward_scale = 4;
  EXPECT_EQ(BackwardScale(config), 4);
}

TEST(GradientRangeAdvice, SaysWhetherToRaiseOrLower) {
  EXPECT_EQ(GradientRangeAdvice({}, 1), std::nullopt);
  EXPECT_EQ(GradientRangeAdvice({.values = 1000, .underflowed = 10}, 1), std::nullopt);
  EXPECT_THAT(GradientRangeAdvice({.values = 1000, .underflowed = 11}, 4),
              Optional(HasSubstr("11 of 1000 gradients of pooled embeddings were too small and "
                                 "became 0: raise comm.backward_scale (it is 4;")));
  EXPECT_THAT(GradientRangeAdvice({.values = 1000, .overflowed = 1, .underflowed = 500}, 8),
              Optional(HasSubstr("lower comm.backward_scale")));
}

// A resumed run reports the same as an uninterrupted one.
TEST(LoopState, KeepsTheRangeOfGradients) {
  RunRanksAsThreads(3, [](Communicator& comm) {
    LoopState state, resumed;
    state.window.resize(1);
    resumed.window.resize(1);
    state.gradient_range = {100, 1 + comm.rank(), 7};
    const ProgressTensors saved = SaveProgress(comm, state);
    RestoreProgress(saved, comm.rank(), &resumed);
    const WireRange sum = MergeRanges(comm, resumed.gradient_range);
    EXPECT_EQ(sum.values, 300);
    EXPECT_EQ(sum.overflowed, 6);
    EXPECT_EQ(sum.underflowed, 21);
  });
}

}  // namespace
}  // namespace renzan
