#include "renzan/model/blocks/in_batch_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "renzan/model/blocks/block_testing.h"
#include "renzan/nn/isa.h"

namespace renzan {
namespace {

constexpr TrainingPosition kAnyStep{};

// Some samples with one item, which occurs with others.
SampleItems SomeItems(int64_t n) {
  SampleItems items;
  for (int64_t i = 0; i < n; ++i) {
    items.first.push_back(static_cast<int32_t>(i % 3 == 0 ? 0 : i));
    items.log_shares.push_back(-static_cast<float>(1 + i % 4));
  }
  return items;
}

// The logits and their gradients by the definition, in double precision.
struct PlainSoftmax {
  std::vector<double> logits, d_query, d_item;
};

// `items`: null without `item`. `d`: the logits' gradients.
PlainSoftmax ByDefinition(const BlockAlone& block, int64_t n, int64_t width, double temperature,
                          const SampleItems* items, bool popularity, const std::vector<float>& d) {
  PlainSoftmax plain{.logits = {},
                     .d_query = std::vector<double>(static_cast<size_t>(n * width)),
                     .d_item = std::vector<double>(static_cast<size_t>(n * width))};
  const auto value = [&](size_t input, int64_t i, int64_t k) {
    return double{block.inputs[input][static_cast<size_t>(i * width + k)]};
  };
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> scores, shares;
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(j);
      double score = 0;
      for (int64_t k = 0; k < width; ++k) score += value(0, i, k) * value(1, j, k) / temperature;
      if (popularity) score -= double{items->log_shares[at]};
      const bool same =
          items != nullptr && items->first[static_cast<size_t>(i)] == items->first[at];
      scores.push_back(score);
      shares.push_back(i == j || same ? 0 : std::exp(score));
      sum += shares.back();
    }
    const double mine = scores[static_cast<size_t>(i)];
    plain.logits.push_back(mine - std::log(sum));
    for (int64_t j = 0; j < n; ++j) {
      const double slope = double{d[static_cast<size_t>(i)]} / temperature *
                           ((i == j ? 1 : 0) - shares[static_cast<size_t>(j)] / sum);
      for (int64_t k = 0; k < width; ++k) {
        plain.d_query[static_cast<size_t>(i * width + k)] += slope * value(1, j, k);
        plain.d_item[static_cast<size_t>(j * width + k)] += slope * value(0, i, k);
      }
    }
  }
  return plain;
}

void ExpectNear(const std::vector<float>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(double{values[i]}, expected[i], 2e-5 * (1 + std::abs(expected[i]))) << i;
}

TEST(InBatchSoftmax, IsTheLogOddsAmongTheOtherSamplesItems) {
  for (const auto& [n, width] : {std::pair{2, 1}, {9, 5}, {64, 16}, {150, 20}})
    for (const bool has_item : {false, true})
      for (const bool popularity : {false, true}) {
        if (popularity && !has_item) continue;
        SCOPED_TRACE(
            fmt::format("{} x {}, item {}, popularity {}", n, width, has_item, popularity));
        BlockAlone block(
            InBatchSoftmax{
                .temperature = 0.8, .item = has_item ? "item" : "", .popularity = popularity},
            {{{"query", width}}, {{"item", width}}}, n, kAnyStep);
        block.items = {SomeItems(n)};
        // As BlockAlone weighs the outputs.
        const std::vector<float> d = RandomValues(static_cast<size_t>(n), 9);
        const PlainSoftmax plain =
            ByDefinition(block, n, width, 0.8, has_item ? &block.items[0] : nullptr, popularity, d);
        ExpectNear(block.Output(), plain.logits);
        const std::vector<std::vector<float>> gradients = block.Gradients().second;
        ExpectNear(gradients[0], plain.d_query);
        ExpectNear(gradients[1], plain.d_item);
        if (n < 10) block.ExpectGradients();
      }
}

// All classes with fused multiply-add give the same bits (gemm.h).
TEST(InBatchSoftmax, BitsDoNotDependOnTheWidthOfVectors) {
  constexpr int64_t kSamples = 90, kWidth = 12;
  std::vector<float> first;
  for (const char* isa : {"avx2", "avx512", "sse4"}) {
    SCOPED_TRACE(isa);
    try {
      SelectIsa(isa);
    } catch (const Error&) {
      continue;  // not supported by this machine
    }
    BlockAlone block(InBatchSoftmax{.temperature = 0.3, .item = "item", .popularity = true},
                     {{{"query", kWidth}}, {{"item", kWidth}}}, kSamples, kAnyStep);
    block.items = {SomeItems(kSamples)};
    std::vector<float> all = block.Output();
    for (const std::vector<float>& each : block.Gradients().second)
      all.insert(all.end(), each.begin(), each.end());
    if (first.empty()) first = all;
    if (isa == std::string("sse4")) {
      for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], first[i], 1e-4f);
    } else {
      EXPECT_EQ(all, first);
    }
  }
  SelectIsa("auto");
}

// The loss of label 1 is the cross entropy of a softmax over all samples.
TEST(InBatchSoftmax, ItsBinaryCrossEntropyIsThatOfTheSoftmax) {
  constexpr int64_t kSamples = 7, kWidth = 3;
  BlockAlone block(InBatchSoftmax{}, {{{"q", kWidth}}, {{"v", kWidth}}}, kSamples, kAnyStep);
  const std::vector<float> y = block.Output();
  for (int64_t i = 0; i < kSamples; ++i) {
    double all = 0, own = 0;
    for (int64_t j = 0; j < kSamples; ++j) {
      double score = 0;
      for (int64_t d = 0; d < kWidth; ++d)
        score += double{block.inputs[0][static_cast<size_t>(i * kWidth + d)]} *
                 double{block.inputs[1][static_cast<size_t>(j * kWidth + d)]};
      all += std::exp(score);
      if (j == i) own = std::exp(score);
    }
    EXPECT_NEAR(std::log1p(std::exp(-double{y[static_cast<size_t>(i)]})), -std::log(own / all),
                1e-5);
  }
}

TEST(InBatchSoftmax, ScoresAreNeitherTooLargeNorTooSmall) {
  BlockAlone block(InBatchSoftmax{.temperature = 0.01}, {{{"q", 2}}, {{"v", 2}}}, 3, kAnyStep);
  block.inputs = {{10, 0, 0, 10, 10, 10}, {10, 0, 0, 10, -10, -10}};
  const std::vector<float> y = block.Output();
  EXPECT_FLOAT_EQ(y[0], 10000);  // 10000, against 0 and -10000
  EXPECT_FLOAT_EQ(y[1], 10000);
  EXPECT_FLOAT_EQ(y[2], -20000 - 10000 - std::log(2.0f));
  for (const std::vector<float>& each : block.Gradients().second)
    for (const float d : each) EXPECT_TRUE(std::isfinite(d));
}

TEST(InBatchSoftmax, ASampleWithoutNegativesLearnsNothing) {
  BlockAlone block(InBatchSoftmax{.item = "item"}, {{{"q", 2}}, {{"v", 2}}}, 3, kAnyStep);
  block.items = {{.first = {0, 0, 0}, .log_shares = {0, 0, 0}, .order = {}}};
  for (const float y : block.Output()) EXPECT_EQ(y, 30);
  for (const std::vector<float>& each : block.Gradients().second)
    for (const float d : each) EXPECT_EQ(d, 0);
}

TEST(InBatchSoftmax, ValuesThatAreNotFiniteAreSeen) {
  BlockAlone block(InBatchSoftmax{}, {{{"q", 2}}, {{"v", 2}}}, 3, kAnyStep);
  block.inputs[1][0] = std::numeric_limits<float>::quiet_NaN();
  for (const float y : block.Output()) EXPECT_TRUE(std::isnan(y));
}

TEST(InBatchSoftmax, EvaluationComparesNothing) {
  BlockAlone block(InBatchSoftmax{.temperature = 0.5, .item = "item", .popularity = true},
                   {{{"q", 3}}, {{"v", 3}}}, 4);
  const std::vector<float> y = block.Output();
  for (size_t i = 0; i < y.size(); ++i) {
    double product = 0;
    for (size_t d = 0; d < 3; ++d)
      product += double{block.inputs[0][3 * i + d]} * double{block.inputs[1][3 * i + d]};
    EXPECT_NEAR(double{y[i]}, 2 * product, 1e-6);
  }
}

TEST(InBatchSoftmax, WorksInBFloat16) {
  constexpr int64_t kSamples = 100;
  const auto results = [](Precision precision) {
    BlockAlone block(InBatchSoftmax{.item = "item", .popularity = true}, {{{"q", 20}}, {{"v", 20}}},
                     kSamples, kAnyStep, precision);
    block.items = {SomeItems(kSamples)};
    std::vector<float> all = block.Output();
    for (const std::vector<float>& each : block.Gradients().second)
      all.insert(all.end(), each.begin(), each.end());
    return all;
  };
  const std::vector<float> exact = results(Precision::kFloat32);
  for (const char* isa : {"avx2", "amx", "auto"}) {
    SCOPED_TRACE(isa);
    try {
      SelectIsa(isa, Precision::kBFloat16);
    } catch (const Error&) {
      continue;  // not supported by this machine
    }
    const std::vector<float> rounded = results(Precision::kBFloat16);
    double error = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      error += std::pow(double{exact[i]} - double{rounded[i]}, 2);
      size += std::pow(double{exact[i]}, 2);
    }
    EXPECT_LT(std::sqrt(error / size), 0.02);
    EXPECT_GT(std::sqrt(error / size), 0.0002);
  }
  SelectIsa("auto");
}

TEST(InBatchSoftmax, RefusesWhatDoesNotFit) {
  EXPECT_EQ(Refusal(InBatchSoftmax{}, {{{"q", 3}}}),
            "block block takes two inputs, a query and an item, but has 1 input");
  EXPECT_EQ(Refusal(InBatchSoftmax{}, {{{"q", 3}}, {{"v", 4}}}),
            "block block takes a query and an item of one width, but its inputs have 3 and 4");
}

}  // namespace
}  // namespace renzan
