#include "renzan/model/blocks/self_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

constexpr size_t kAttended = 3, kAttendedDim = 4, kAttendedSamples = 4;
const std::vector<Shape> kAttendedInput = {
    {{"a", kAttendedDim}, {"b", kAttendedDim}, {"c", kAttendedDim}}};

// With a residual that is projected or not, and each option in both states.
const std::vector<SelfAttention> kAttentions = {
    {},
    {.heads = 2},
    {.heads = 2, .dim = 5},
    {.heads = 3, .dim = 1, .relu = false},
    {.heads = 2, .dim = 3, .residual = false},
    {.dim = 6, .residual = false, .scale = false, .relu = false},
    {.heads = 2, .scale = false, .causal = true},
    {.heads = 2, .dim = 17, .causal = true, .relu = false},
};

// The rows of matrix · x for one vector.
std::vector<double> ProductWith(std::span<const float> matrix, const float* x) {
  std::vector<double> product;
  for (size_t row = 0; row < matrix.size() / kAttendedDim; ++row) {
    product.push_back(0);
    for (size_t c = 0; c < kAttendedDim; ++c)
      product.back() += double{matrix[row * kAttendedDim + c]} * double{x[c]};
  }
  return product;
}

// What the definition gives for vector i of the sample x.
std::vector<double> ExpectedAttention(const SelfAttention& options, BlockAlone& block,
                                      const float* x, size_t i, size_t used = kAttended) {
  const size_t heads = static_cast<size_t>(options.heads);
  const size_t dim = options.dim == 0 ? kAttendedDim / heads : static_cast<size_t>(options.dim);
  std::vector<double> expected(heads * dim);
  const auto query = ProductWith(block.parameter("query.weight"), x + i * kAttendedDim);
  for (size_t h = 0; h < heads; ++h) {
    double sum = 0;
    std::vector<double> mean(dim);
    for (size_t j = 0; j < (options.causal ? i + 1 : used); ++j) {
      const auto key = ProductWith(block.parameter("key.weight"), x + j * kAttendedDim);
      const auto value = ProductWith(block.parameter("value.weight"), x + j * kAttendedDim);
      double score = 0;
      for (size_t k = h * dim; k < (h + 1) * dim; ++k) score += query[k] * key[k];
      const double e =
          std::exp(options.scale ? score / std::sqrt(static_cast<double>(dim)) : score);
      sum += e;
      for (size_t k = 0; k < dim; ++k) mean[k] += e * value[h * dim + k];
    }
    for (size_t k = 0; k < dim; ++k) expected[h * dim + k] = mean[k] / sum;
  }
  if (options.residual && heads * dim == kAttendedDim)
    for (size_t k = 0; k < kAttendedDim; ++k) expected[k] += double{x[i * kAttendedDim + k]};
  if (options.residual && heads * dim != kAttendedDim) {
    const auto residual = ProductWith(block.parameter("residual.weight"), x + i * kAttendedDim);
    for (size_t k = 0; k < expected.size(); ++k) expected[k] += residual[k];
  }
  if (options.relu)
    for (double& each : expected) each = std::max(each, 0.0);
  return expected;
}

class SelfAttentionBlock : public ::testing::TestWithParam<size_t> {};  // of kAttentions

TEST_P(SelfAttentionBlock, ComputesItsDefinition) {
  const SelfAttention& options = kAttentions[GetParam()];
  BlockAlone attention(options, kAttendedInput, kAttendedSamples, std::nullopt, Precision::kFloat32,
                       false);
  const std::vector<float> y = attention.Output();
  const Shape& shape = attention.block().shape();
  ASSERT_EQ(shape.size(), kAttended);
  EXPECT_EQ(shape[1].name, "b");
  const size_t width = static_cast<size_t>(shape[1].dim);
  for (size_t sample = 0; sample < kAttendedSamples; ++sample)
    for (size_t i = 0; i < kAttended; ++i) {
      const std::vector<double> expected = ExpectedAttention(
          options, attention, attention.inputs[0].data() + sample * kAttended * kAttendedDim, i);
      ASSERT_EQ(expected.size(), width);
      for (size_t k = 0; k < width; ++k)
        EXPECT_NEAR(double{y[(sample * kAttended + i) * width + k]}, expected[k], 1e-5);
    }
}

// Of a sequence: over the positions that a sample uses, whose outputs may be none.
TEST_P(SelfAttentionBlock, ComputesItsDefinitionForASequence) {
  const SelfAttention& options = kAttentions[GetParam()];
  BlockAlone attention(options, kAttendedInput, kAttendedSamples);
  const std::vector<int32_t> lengths = {2, 0, 3, 1};
  attention.SetLengths(lengths);
  const std::vector<float> y = attention.Output();
  const size_t width = y.size() / kAttendedSamples / kAttended;
  for (size_t sample = 0; sample < kAttendedSamples; ++sample)
    for (size_t i = 0; i < static_cast<size_t>(lengths[sample]); ++i) {
      const std::vector<double> expected = ExpectedAttention(
          options, attention, attention.inputs[0].data() + sample * kAttended * kAttendedDim, i,
          static_cast<size_t>(lengths[sample]));
      for (size_t k = 0; k < width; ++k)
        EXPECT_NEAR(double{y[(sample * kAttended + i) * width + k]}, expected[k], 1e-5);
    }
}

// More vectors than a machine's vector has lanes.
TEST(SelfAttention, GradientsOfManyVectorsAgreeWithFiniteDifferences) {
  Shape many;
  for (int v = 0; v < 21; ++v) many.push_back({fmt::format("v{}", v), 3});
  for (const bool causal : {false, true}) {
    for (const bool newest : {false, true}) {
      BlockAlone block(SelfAttention{.heads = 2, .dim = 2, .causal = causal, .relu = false},
                       {many});
      if (newest) block.GiveOnlyNewest();
      block.SetLengths({21, 17, 3, 16});
      block.ExpectGradients();
    }
  }
}

// Without ReLU: some outputs are so close to its kink that differences say nothing.
TEST_P(SelfAttentionBlock, GradientsAgreeWithFiniteDifferences) {
  SelfAttention options = kAttentions[GetParam()];
  options.relu = false;
  for (const bool sequence : {false, true})
    BlockAlone(options, kAttendedInput, kAttendedSamples, std::nullopt, Precision::kFloat32,
               sequence)
        .ExpectGradients();
}

TEST(SelfAttention, GradientsThroughReluAgreeWithFiniteDifferences) {
  for (const bool residual : {true, false}) {
    SelfAttention options = {.heads = 2, .residual = residual, .relu = false};
    const std::vector<float> y = BlockAlone(options, kAttendedInput, kAttendedSamples).Output();
    for (const float each : y) ASSERT_GT(std::abs(each), 0.01f) << "is far from the kink";
    EXPECT_LT(*std::min_element(y.begin(), y.end()), 0);
    options.relu = true;
    BlockAlone(options, kAttendedInput, kAttendedSamples).ExpectGradients();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SelfAttentionBlock, ::testing::Range(size_t{0}, kAttentions.size()));

TEST(SelfAttention, SharesWeightsBetweenVectors) {
  const BlockAlone attention(SelfAttention{.heads = 2, .dim = 5}, kAttendedInput);
  ASSERT_EQ(attention.layout().parameters().size(), 4u);
  for (const Parameter& parameter : attention.layout().parameters()) {
    EXPECT_EQ(parameter.shape, (std::vector<int64_t>{10, kAttendedDim})) << parameter.name;
    EXPECT_EQ(parameter.rows_per_sample, int64_t{kAttended}) << parameter.name;
  }
}

// Scores whose exponentials would be infinite.
TEST(SelfAttention, IsFiniteForLargeScores) {
  BlockAlone attention(SelfAttention{.scale = false}, kAttendedInput);
  for (float& x : attention.inputs[0]) x *= 1e4f;
  for (const float y : attention.Output()) EXPECT_TRUE(std::isfinite(y));
}

TEST(SelfAttention, RefusesVectorsThatDoNotFit) {
  EXPECT_EQ(Refusal(SelfAttention{}, {{{"a", 3}, {"b", 4}}}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 3, 4");
  EXPECT_EQ(Refusal(SelfAttention{.heads = 3}, {{{"a", 4}, {"b", 4}}}),
            "block block has 3 heads, but its input has 2 vectors of 4, whose dimension is no "
            "multiple: say which dim each head has");
}

}  // namespace
}  // namespace renzan
