#include "renzan/model/blocks/sampled_softmax.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

constexpr size_t kItemDim = 11, kNegatives = 5;
constexpr TrainingPosition kInThisStep{3, 8};

std::vector<Shape> SoftmaxInputs() {
  const auto dim = static_cast<int64_t>(kItemDim);
  return {{{"query", dim}}, {{"item", dim}}, Shape(kNegatives, {"negative", dim})};
}

// <query, vector> / temperature, in double precision.
double Score(const BlockAlone& block, size_t sample, const float* vector, double temperature) {
  double sum = 0;
  for (size_t d = 0; d < kItemDim; ++d)
    sum += double{block.inputs[0][sample * kItemDim + d]} * double{vector[d]};
  return sum / temperature;
}

TEST(SampledSoftmax, IsTheLogitOfTheItemsProbability) {
  for (const double temperature : {1.0, 0.2}) {
    BlockAlone block(SampledSoftmax{temperature}, SoftmaxInputs(), 4, kInThisStep);
    const std::vector<float> z = block.Output();
    for (size_t i = 0; i < z.size(); ++i) {
      const double item =
          std::exp(Score(block, i, block.inputs[1].data() + i * kItemDim, temperature));
      double all = item;
      for (size_t k = 0; k < kNegatives; ++k)
        all += std::exp(
            Score(block, i, block.inputs[2].data() + (i * kNegatives + k) * kItemDim, temperature));
      // Binary cross entropy with label 1 is the softmax's cross entropy.
      EXPECT_NEAR(std::log1p(std::exp(-double{z[i]})), -std::log(item / all), 1e-5);
    }
    block.ExpectGradients();
  }
}

TEST(SampledSoftmax, IsTheScoreWithoutTraining) {
  BlockAlone block(SampledSoftmax{.temperature = 0.5}, SoftmaxInputs());
  // As predictions have it: no negatives.
  block.SetLengths({0, 0, 0, 0});
  const std::vector<float> s = block.Output();
  for (size_t i = 0; i < s.size(); ++i)
    EXPECT_NEAR(double{s[i]}, Score(block, i, block.inputs[1].data() + i * kItemDim, 0.5), 1e-5);
}

TEST(SampledSoftmax, IsFiniteForLargeScores) {
  BlockAlone block(SampledSoftmax{.temperature = 1e-3}, SoftmaxInputs(), 4, kInThisStep);
  for (std::vector<float>& input : block.inputs)
    for (float& value : input) value *= 10;
  for (const float z : block.Output()) EXPECT_TRUE(std::isfinite(z));
  const auto [parameters, d_inputs] = block.Gradients();
  for (const std::vector<float>& gradients : d_inputs)
    for (const float d : gradients) EXPECT_TRUE(std::isfinite(d));
}

TEST(SampledSoftmax, RefusesOtherInputs) {
  EXPECT_EQ(Refusal(SampledSoftmax{}, {{{"q", 2}}, {{"a", 2}}}),
            "block block takes a query, an item and negatives, but has 2 inputs");
  EXPECT_EQ(Refusal(SampledSoftmax{}, {{{"q", 3}}, {{"a", 2}}, {{"a", 2}, {"b", 2}}}),
            "block block compares 1 vector of 3 with 1 vector of 2 and 2 vectors of 2: query, item "
            "and negatives must have one width");
  EXPECT_EQ(Refusal(SampledSoftmax{}, {{{"q", 2}}, {{"a", 1}, {"b", 1}}, {{"a", 2}, {"b", 2}}}),
            "block block compares 1 vector of 2 with 2 vectors of 1 and 2 vectors of 2: query, "
            "item and negatives must have one width");
}

}  // namespace
}  // namespace renzan
