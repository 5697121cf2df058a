#include "renzan/model/blocks/hstu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

constexpr size_t kHstuPositions = 19, kHstuDim = 4;
const std::vector<int32_t> kHstuLengths = {19, 0, 5, 17};

Shape HstuInput() {
  Shape shape;
  for (size_t v = 0; v < kHstuPositions; ++v)
    shape.push_back({fmt::format("s.{}", v), static_cast<int64_t>(kHstuDim)});
  return shape;
}

double SiluOf(double z) { return z / (1 + std::exp(-z)); }

// The definition for position i of a sample.
std::vector<double> HstuTwin(const Hstu& options, BlockAlone& block, const float* x, size_t i) {
  const size_t heads = static_cast<size_t>(options.heads);
  const size_t dim = options.dim == 0 ? kHstuDim / heads : static_cast<size_t>(options.dim);
  const size_t width = heads * dim;
  const auto projection = block.parameter("projection.weight");
  const auto projected = [&](size_t part, size_t j, size_t c) {  // 0 to 3: U, V, Q, K
    double sum = 0;
    for (size_t k = 0; k < kHstuDim; ++k)
      sum += double{projection[(part * width + c) * kHstuDim + k]} * double{x[j * kHstuDim + k]};
    return SiluOf(sum);
  };
  std::vector<double> attended(width);
  for (size_t h = 0; h < heads; ++h)
    for (size_t j = 0; j <= i; ++j) {
      double score = 0;
      for (size_t c = h * dim; c < (h + 1) * dim; ++c)
        score += projected(2, i, c) * projected(3, j, c);
      if (options.positions == "relative") score += double{block.parameter("distance")[i - j]};
      for (size_t c = h * dim; c < (h + 1) * dim; ++c)
        attended[c] += SiluOf(score) / kHstuPositions * projected(1, j, c);
    }
  double mean = 0, variance = 0;
  for (const double a : attended) mean += a / static_cast<double>(width);
  for (const double a : attended) variance += (a - mean) * (a - mean) / static_cast<double>(width);
  std::vector<double> y;
  for (size_t c = 0; c < kHstuDim; ++c) {
    y.push_back(double{x[i * kHstuDim + c]} + double{block.parameter("output.bias")[c]});
    for (size_t k = 0; k < width; ++k)
      y[c] += double{block.parameter("output.weight")[c * width + k]} * projected(0, i, k) *
              (attended[k] - mean) / std::sqrt(variance + 1e-6);
  }
  return y;
}

TEST(HstuBlock, ComputesItsDefinition) {
  for (const Hstu& options : {Hstu{.heads = 2}, Hstu{.heads = 2, .dim = 5},
                              Hstu{.heads = 1, .dim = 17}, Hstu{.positions = "none"}}) {
    BlockAlone block(options, {HstuInput()});
    block.SetLengths(kHstuLengths);
    const std::vector<float> y = block.Output();
    for (size_t sample = 0; sample < kHstuLengths.size(); ++sample)
      for (size_t i = 0; i < static_cast<size_t>(kHstuLengths[sample]); ++i) {
        const size_t first = sample * kHstuPositions * kHstuDim;
        const std::vector<double> expected =
            HstuTwin(options, block, block.inputs[0].data() + first, i);
        for (size_t c = 0; c < kHstuDim; ++c)
          EXPECT_NEAR(double{y[first + i * kHstuDim + c]}, expected[c], 2e-4) << sample << " " << i;
      }
  }
}

TEST(HstuBlock, GradientsAgreeWithFiniteDifferences) {
  for (const Hstu& options : {Hstu{.heads = 2, .dim = 3}, Hstu{.positions = "none"}}) {
    for (const bool newest : {false, true}) {
      BlockAlone block(options, {HstuInput()});
      if (newest) block.GiveOnlyNewest();
      block.SetLengths(kHstuLengths);
      block.ExpectGradients();
    }
    BlockAlone features(options, {HstuInput()}, 4, std::nullopt, Precision::kFloat32, false);
    features.ExpectGradients();
  }
}

TEST(HstuBlock, RefusesVectorsThatDoNotFit) {
  EXPECT_EQ(Refusal(Hstu{}, {{{"a", 3}, {"b", 4}}}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 3, 4");
  EXPECT_EQ(Refusal(Hstu{.heads = 3}, {{{"a", 4}, {"b", 4}}}),
            "block block has 3 heads, but its input has 2 vectors of 4, whose dimension is no "
            "multiple: say which dim each head has");
  EXPECT_EQ(Refusal(Hstu{.dim = 1}, {{{"a", 4}, {"b", 4}}}),
            "block block normalizes two columns or more, but heads · dim is 1: set dim");
}

}  // namespace
}  // namespace renzan
