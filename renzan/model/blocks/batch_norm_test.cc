#include "renzan/model/blocks/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

// More columns than are computed at once.
const std::vector<Shape> kTwoVectors = {{{"a", 37}, {"b", 4}}};
constexpr size_t kSampleCount = 6, kNormalizedColumns = 41;
constexpr TrainingPosition kInTraining{3, 12};

struct Moments {
  double mean = 0, squares = 0;  // Σ (x − mean)²
};
Moments MomentsOf(const std::vector<float>& x, size_t column) {
  Moments moments;
  for (size_t i = 0; i < kSampleCount; ++i)
    moments.mean += double{x[i * kNormalizedColumns + column]} / double{kSampleCount};
  for (size_t i = 0; i < kSampleCount; ++i)
    moments.squares += std::pow(double{x[i * kNormalizedColumns + column]} - moments.mean, 2);
  return moments;
}

TEST(BatchNorm, NormalizesByTheSamplesInTraining) {
  for (const double epsilon : {1e-5, 0.3}) {
    BlockAlone norm(BatchNorm{.epsilon = epsilon}, kTwoVectors, kSampleCount, kInTraining);
    const std::vector<float> y = norm.Output();
    for (size_t c = 0; c < kNormalizedColumns; ++c) {
      const Moments its = MomentsOf(norm.inputs[0], c);
      const double scale = 1 / std::sqrt(its.squares / double{kSampleCount} + epsilon);
      for (size_t i = 0; i < kSampleCount; ++i)
        EXPECT_NEAR(double{y[i * kNormalizedColumns + c]},
                    double{norm.parameter("gamma")[c]} *
                            (double{norm.inputs[0][i * kNormalizedColumns + c]} - its.mean) *
                            scale +
                        double{norm.parameter("beta")[c]},
                    1e-5);
    }
  }
}

TEST(BatchNorm, NormalizesByTheRunningStatisticsElsewhere) {
  for (const bool affine : {false, true}) {
    BlockAlone norm(BatchNorm{.epsilon = 1e-3, .affine = affine}, kTwoVectors, kSampleCount);
    for (float& variance : norm.parameter("running_var")) variance = std::abs(variance) + 0.1f;
    const std::vector<float> y = norm.Output();
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t c = i % kNormalizedColumns;
      const double normalized =
          (double{norm.inputs[0][i]} - double{norm.parameter("running_mean")[c]}) /
          std::sqrt(double{norm.parameter("running_var")[c]} + 1e-3);
      EXPECT_NEAR(double{y[i]},
                  affine ? double{norm.parameter("gamma")[c]} * normalized +
                               double{norm.parameter("beta")[c]}
                         : normalized,
                  1e-5);
    }
  }
}

TEST(BatchNorm, GradientsAgreeWithFiniteDifferences) {
  for (const bool affine : {false, true})
    BlockAlone(BatchNorm{.affine = affine}, kTwoVectors, kSampleCount, kInTraining)
        .ExpectGradients();
}

TEST(BatchNorm, ObservesTheMeanAndTheUnbiasedVariance) {
  BlockAlone norm(BatchNorm{}, kTwoVectors, kSampleCount, kInTraining);
  norm.ExpectGradients();
  ASSERT_EQ(norm.statistics.size(), 2 * kNormalizedColumns);
  for (size_t c = 0; c < kNormalizedColumns; ++c) {
    const Moments its = MomentsOf(norm.inputs[0], c);
    EXPECT_NEAR(double{norm.statistics[c]}, its.mean, 1e-6);
    EXPECT_NEAR(double{norm.statistics[kNormalizedColumns + c]}, its.squares / (kSampleCount - 1),
                1e-6);
  }
}

TEST(BatchNorm, BeginsWithNothingButNormalized) {
  const BlockAlone norm(BatchNorm{.momentum = 0.25}, kTwoVectors);
  std::vector<std::string> names;
  for (const Parameter& each : norm.layout().parameters()) {
    names.push_back(each.name);
    const bool is_factor = each.name == "block.gamma" || each.name == "block.running_var";
    EXPECT_EQ(each.initializer, is_factor ? Initializer::kOne : Initializer::kZero);
    EXPECT_EQ(each.is_statistic(), each.name.starts_with("block.running_"));
    EXPECT_EQ(each.momentum, each.is_statistic() ? 0.25 : 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"block.gamma", "block.beta", "block.running_mean",
                                             "block.running_var"}));
}

TEST(BatchNorm, GivesTheVectorsOfItsInput) {
  const BlockAlone norm(BatchNorm{}, kTwoVectors);
  ASSERT_EQ(norm.block().shape().size(), 2u);
  EXPECT_EQ(norm.block().shape()[1].name, "b");
  EXPECT_EQ(norm.block().shape()[1].dim, 4);
}

}  // namespace
}  // namespace renzan
