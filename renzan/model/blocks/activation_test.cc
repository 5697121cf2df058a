#include "renzan/model/blocks/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/model/blocks/block_testing.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

TEST(ActivationBlock, IsAFunctionOfEachValue) {
  for (const std::string& name : ActivationNames()) {
    SCOPED_TRACE(name);
    BlockAlone block(ActivationFunction{name}, {{{"x", 3}, {"y", 17}}});
    const std::vector<float> y = block.Output();
    BlockedMatrix values(4, 20);
    Activate(ActivationNamed(name), Blocked(block.inputs[0], 4, 20), &values);
    EXPECT_EQ(y, RowMajor(values));
    EXPECT_EQ(block.block().shape().size(), 2u);
    block.ExpectGradients();
  }
}

const std::vector<Shape> kActivated = {{{"x", 3}, {"y", 17}}};

TEST(Prelu, HasASlopeForEachColumnBelowZero) {
  BlockAlone block(ActivationFunction{"prelu"}, kActivated);
  const std::vector<float> y = block.Output(), &z = block.inputs[0];
  ASSERT_EQ(block.parameter("slope").size(), 20u);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], z[i] > 0 ? z[i] : block.parameter("slope")[i % 20] * z[i]);
  block.ExpectGradients();
  EXPECT_EQ(block.layout().parameters()[0].initializer, Initializer::kQuarter);
}

double DiceOf(double z, double mean, double variance, double slope) {
  const double p = 1 / (1 + std::exp(-(z - mean) / std::sqrt(variance + 1e-9)));
  return p * z + (1 - p) * slope * z;
}

TEST(Dice, TakesTheSamplesStatisticsInTraining) {
  BlockAlone block(ActivationFunction{"dice"}, kActivated, 8, TrainingPosition{3, 12});
  const std::vector<float> y = block.Output(), &z = block.inputs[0];
  for (size_t c = 0; c < 20; ++c) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 8; ++i) mean += double{z[i * 20 + c]} / 8;
    for (size_t i = 0; i < 8; ++i) variance += std::pow(double{z[i * 20 + c]} - mean, 2) / 8;
    for (size_t i = c; i < y.size(); i += 20)
      EXPECT_NEAR(double{y[i]},
                  DiceOf(double{z[i]}, mean, variance, double{block.parameter("slope")[c]}), 1e-5);
  }
  block.ExpectGradients();
  for (const Parameter& each : block.layout().parameters())
    EXPECT_EQ(each.momentum, each.is_statistic() ? 0.01 : 0);
}

TEST(Dice, TakesTheRunningStatisticsElsewhere) {
  BlockAlone block(ActivationFunction{"dice"}, kActivated);
  for (float& variance : block.parameter("running_var")) variance = std::abs(variance) + 0.1f;
  const std::vector<float> y = block.Output(), &z = block.inputs[0];
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i % 20;
    EXPECT_NEAR(
        double{y[i]},
        DiceOf(double{z[i]}, double{block.parameter("running_mean")[c]},
               double{block.parameter("running_var")[c]}, double{block.parameter("slope")[c]}),
        1e-5);
  }
}

}  // namespace
}  // namespace renzan
