#include "renzan/model/blocks/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

const std::vector<Shape> kNormalized = {{{"a", 5}, {"b", 5}, {"c", 5}}};

class LayerNormBlock : public ::testing::TestWithParam<bool> {};  // whether per vector

TEST_P(LayerNormBlock, ComputesItsDefinition) {
  for (const double epsilon : {1e-5, 0.3}) {
    BlockAlone norm(LayerNorm{.per_vector = GetParam(), .epsilon = epsilon}, kNormalized);
    const std::vector<float> y = norm.Output();
    const auto gamma = norm.parameter("gamma"), beta = norm.parameter("beta");
    const size_t width = GetParam() ? 5 : 15;
    ASSERT_EQ(gamma.size(), width);
    ASSERT_EQ(beta.size(), width);
    ASSERT_EQ(y.size(), 4 * 15u);
    for (size_t first = 0; first < y.size(); first += width) {
      const float* const x = norm.inputs[0].data() + first;
      double mean = 0, variance = 0;
      for (size_t c = 0; c < width; ++c) mean += double{x[c]} / static_cast<double>(width);
      for (size_t c = 0; c < width; ++c)
        variance += std::pow(double{x[c]} - mean, 2) / static_cast<double>(width);
      for (size_t c = 0; c < width; ++c)
        EXPECT_NEAR(double{y[first + c]},
                    double{gamma[c]} * (double{x[c]} - mean) / std::sqrt(variance + epsilon) +
                        double{beta[c]},
                    1e-5);
    }
  }
}

TEST_P(LayerNormBlock, GradientsAgreeWithFiniteDifferences) {
  BlockAlone(LayerNorm{.per_vector = GetParam()}, kNormalized).ExpectGradients();
}

TEST_P(LayerNormBlock, GivesTheVectorsOfItsInput) {
  BlockAlone norm(LayerNorm{.per_vector = GetParam()}, kNormalized);
  ASSERT_EQ(norm.block().shape().size(), 3u);
  EXPECT_EQ(norm.block().shape()[1].name, "b");
  EXPECT_EQ(norm.block().shape()[1].dim, 5);
}

INSTANTIATE_TEST_SUITE_P(All, LayerNormBlock, ::testing::Bool());

TEST(LayerNorm, BeginsWithNothingButNormalized) {
  const BlockAlone norm(LayerNorm{}, kNormalized);
  for (const Parameter& parameter : norm.layout().parameters())
    EXPECT_EQ(parameter.initializer,
              parameter.name == "block.gamma" ? Initializer::kOne : Initializer::kZero);
}

TEST(LayerNorm, RefusesWhatItCannotNormalize) {
  const Shape mixed = {{"a", 3}, {"b", 4}}, ones = {{"a", 1}, {"b", 1}};
  EXPECT_EQ(Refusal(LayerNorm{}, {mixed}), "");
  EXPECT_EQ(Refusal(LayerNorm{.per_vector = true}, {mixed}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 3, 4");
  EXPECT_EQ(Refusal(LayerNorm{}, {ones}), "");
  EXPECT_EQ(Refusal(LayerNorm{.per_vector = true}, {ones}),
            "block block normalizes two columns or more, but its input has 2 vectors of 1");
  EXPECT_EQ(Refusal(LayerNorm{}, {{{"a", 1}}}),
            "block block normalizes two columns or more, but its input has 1 vector of 1");
}

}  // namespace
}  // namespace renzan
