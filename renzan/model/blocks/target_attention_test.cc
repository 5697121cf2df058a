#include "renzan/model/blocks/target_attention.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

constexpr size_t kKeyDim = 3, kKeyPositions = 4, kKeySamples = 4;
const std::vector<int32_t> kLengths = {4, 0, 1, 3};

BlockAlone Attention(const TargetAttention& options) {
  Shape keys;
  for (size_t v = 0; v < kKeyPositions; ++v)
    keys.push_back({fmt::format("s.{}", v), static_cast<int64_t>(kKeyDim)});
  return BlockAlone(options, {{{"q", static_cast<int64_t>(kKeyDim)}}, keys});
}

double LogisticOf(double x) { return 1 / (1 + std::exp(-x)); }

// The output of a sample, in double precision, with one hidden layer.
std::vector<double> Twin(BlockAlone& block, size_t sample, bool softmax) {
  const float* q = block.inputs[0].data() + sample * kKeyDim;
  const float* keys = block.inputs[1].data() + sample * kKeyDim * kKeyPositions;
  const auto w0 = block.parameter("0.weight"), b0 = block.parameter("0.bias");
  const auto w1 = block.parameter("1.weight");
  const double b1 = softmax ? 0 : double{block.parameter("1.bias")[0]};
  std::vector<double> scores;
  for (int32_t v = 0; v < kLengths[sample]; ++v) {
    const float* k = keys + static_cast<size_t>(v) * kKeyDim;
    std::vector<double> x(4 * kKeyDim);
    for (size_t d = 0; d < kKeyDim; ++d) {
      x[d] = double{q[d]};
      x[kKeyDim + d] = double{k[d]};
      x[2 * kKeyDim + d] = double{q[d]} - double{k[d]};
      x[3 * kKeyDim + d] = double{q[d]} * double{k[d]};
    }
    double score = b1;
    for (size_t unit = 0; unit < b0.size(); ++unit) {
      double sum = double{b0[unit]};
      for (size_t c = 0; c < x.size(); ++c) sum += double{w0[unit * x.size() + c]} * x[c];
      score += double{w1[unit]} * LogisticOf(sum);
    }
    scores.push_back(score);
  }
  if (softmax) {
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score);
    for (double& score : scores) score /= sum;
  }
  std::vector<double> y(kKeyDim);
  for (size_t v = 0; v < scores.size(); ++v)
    for (size_t d = 0; d < kKeyDim; ++d) y[d] += scores[v] * double{keys[v * kKeyDim + d]};
  return y;
}

TEST(TargetAttentionBlock, WeighsThePositionsThatAreUsed) {
  for (const bool softmax : {false, true}) {
    SCOPED_TRACE(softmax);
    BlockAlone block = Attention({.layers = {5}, .softmax = softmax});
    block.SetLengths(kLengths);
    const std::vector<float> y = block.Output();
    for (size_t i = 0; i < kKeySamples; ++i) {
      const std::vector<double> expected = Twin(block, i, softmax);
      for (size_t d = 0; d < kKeyDim; ++d)
        EXPECT_NEAR(double{y[i * kKeyDim + d]}, expected[d], 1e-5) << i;
    }
    block.ExpectGradients();
  }
}

TEST(TargetAttentionBlock, WorksWithAnyLayersAndActivation) {
  for (const std::string activation : {"relu", "tanh"}) {
    BlockAlone block = Attention({.layers = {6, 4}, .activation = activation});
    block.SetLengths(kLengths);
    block.ExpectGradients();
  }
  BlockAlone linear = Attention({.layers = {}});
  linear.SetLengths(kLengths);
  linear.ExpectGradients();
}

TEST(TargetAttentionBlock, RefusesAnotherWidthAndOtherInputs) {
  EXPECT_EQ(Refusal(TargetAttention{}, {{{"q", 2}}, {{"a", 3}, {"b", 3}}}),
            "block block compares 1 vector of 2 with 2 vectors of 3: they must have one width");
  EXPECT_EQ(Refusal(TargetAttention{}, {{{"q", 2}}}),
            "block block takes a vector and a sequence, but has 1 input");
}

}  // namespace
}  // namespace renzan
