#include "renzan/model/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/model/weighted_metrics.h"

namespace renzan {
namespace {

struct Samples {
  std::vector<float> logits, labels;
};

// Labels are drawn with the predicted probabilities, so the predictions are calibrated.
Samples Draw(size_t n, uint64_t seed, double scale = 2) {
  Samples samples;
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block block = Philox::Draw(seed, i);
    const double logit = scale * Philox::Normal(block[0], block[1]) - 1;
    samples.logits.push_back(static_cast<float>(logit));
    samples.labels.push_back(Philox::Uniform(block[2]) < 1 / (1 + std::exp(-logit)) ? 1.f : 0.f);
  }
  return samples;
}

// By ranks (the mean rank for ties), in O(n log n).
double ExactAuc(const Samples& samples) {
  std::vector<size_t> order(samples.logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return samples.logits[a] < samples.logits[b]; });
  double rank_sum = 0, positives = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && samples.logits[order[end]] == samples.logits[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin + end) + 1) / 2;
    for (; begin < end; ++begin) {
      if (samples.labels[order[begin]] == 0) continue;
      rank_sum += rank;
      ++positives;
    }
  }
  const double negatives = static_cast<double>(order.size()) - positives;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

OutputMetrics MetricsOf(const Samples& samples) {
  OutputMetrics metrics;
  metrics.Add(samples.logits, samples.labels);
  return metrics;
}

TEST(OutputMetrics, AucMatchesExactRanks) {
  for (const double scale : {0.1, 0.5, 2.0, 8.0}) {
    const Samples samples = Draw(50000, 11, scale);
    EXPECT_NEAR(MetricsOf(samples).Auc(), ExactAuc(samples), 1e-4) << "scale " << scale;
  }
}

// An overconfident model's logits lie far beyond +-16, on both sides.
TEST(OutputMetrics, AucOfLargeLogitsMatchesExactRanks) {
  for (const double scale : {20.0, 50.0, 300.0, 20000.0}) {
    Samples samples = Draw(20000, 17, scale);
    for (size_t i = 0; i < samples.labels.size(); i += 3)  // half right, or the AUC would be 1
      samples.labels[i] = i % 2 == 0 ? 0.f : 1.f;
    const double exact = ExactAuc(samples);
    EXPECT_GT(exact, 0.7) << "scale " << scale;
    EXPECT_LT(exact, 0.95) << "scale " << scale;
    EXPECT_NEAR(MetricsOf(samples).Auc(), exact, 1e-4) << "scale " << scale;
    WeightedMetrics weighted(1);
    weighted.Add(samples.logits, samples.labels, std::vector<float>(samples.logits.size(), 1.f));
    EXPECT_NEAR(weighted.Auc(), exact, 1e-4) << "scale " << scale;
  }
}

TEST(OutputMetrics, BinsAreInTheOrderOfLogits) {
  const float max = std::numeric_limits<float>::max();
  int before = -1;
  for (const float logit : {-65537.f, -65535.f, -300.f, -299.f, -16.02f, -16.f, -15.999f, 0.f,
                            15.999f, 16.f, 16.02f, 299.f, 300.f, 65535.f, 65536.f}) {
    const int bin = BinaryHistogram::BinOf(logit);
    EXPECT_GT(bin, before) << logit;
    before = bin;
  }
  EXPECT_EQ(BinaryHistogram::BinOf(-max), 0);
  EXPECT_EQ(BinaryHistogram::BinOf(max), BinaryHistogram::kNumBins - 1);
}

TEST(OutputMetrics, AucOfKnownRankings) {
  EXPECT_EQ(MetricsOf({{-1, 1}, {0, 1}}).Auc(), 1);
  EXPECT_EQ(MetricsOf({{1, -1}, {0, 1}}).Auc(), 0);
  EXPECT_EQ(MetricsOf({{0, 0, 0}, {0, 1, 1}}).Auc(), 0.5);
  EXPECT_EQ(MetricsOf({{-1, 0, 0, 1}, {0, 0, 1, 0}}).Auc(), 0.5);
  EXPECT_EQ(MetricsOf({{-100, 100}, {0, 1}}).Auc(), 1);
  EXPECT_EQ(MetricsOf({{50, 100}, {0, 1}}).Auc(), 1);
  EXPECT_EQ(MetricsOf({{-50, -100}, {0, 1}}).Auc(), 0);
  EXPECT_EQ(MetricsOf({{1e6f, 1e7f}, {0, 1}}).Auc(), 0.5);  // both beyond all octaves
  EXPECT_TRUE(std::isnan(MetricsOf({{-1, 1}, {1, 1}}).Auc()));
  EXPECT_TRUE(std::isnan(OutputMetrics().Auc()));
}

TEST(OutputMetrics, SumsMatchTheFormulas) {
  const Samples samples = Draw(20000, 5);
  double loss = 0, predicted = 0, positives = 0, correct = 0;
  for (size_t i = 0; i < samples.logits.size(); ++i) {
    const double x = samples.logits[i], y = samples.labels[i];
    const double p = 1 / (1 + std::exp(-x));
    loss -= y * std::log(p) + (1 - y) * std::log1p(-p);
    predicted += p;
    positives += y;
    correct += (p > 0.5) == (y == 1) ? 1 : 0;
  }
  const double n = 20000, rate = positives / n;
  const double entropy = -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  const OutputMetrics metrics = MetricsOf(samples);
  EXPECT_EQ(metrics.count, 20000);
  EXPECT_EQ(static_cast<double>(metrics.positives), positives);
  EXPECT_NEAR(metrics.LogLoss(), loss / n, 1e-9);
  EXPECT_NEAR(metrics.Calibration(), predicted / positives, 1e-9);
  EXPECT_NEAR(metrics.NormalizedEntropy(), loss / n / entropy, 1e-9);
  EXPECT_EQ(metrics.Accuracy(), correct / n);
  EXPECT_NEAR(metrics.Calibration(), 1, 0.05);
}

TEST(OutputMetrics, LargeLogitsStayFinite) {
  const float huge = std::numeric_limits<float>::max();
  EXPECT_EQ(MetricsOf({{100}, {0}}).LogLoss(), 100);
  EXPECT_EQ(MetricsOf({{-100}, {1}}).LogLoss(), 100);
  EXPECT_EQ(MetricsOf({{100, -100}, {1, 0}}).LogLoss(), 0);
  EXPECT_EQ(MetricsOf({{huge, -huge}, {1, 0}}).LogLoss(), 0);
  EXPECT_EQ(MetricsOf({{huge, huge}, {0, 0}}).LogLoss(), 0x1.0p30);
  EXPECT_EQ(MetricsOf({{huge, -huge}, {1, 0}}).Calibration(), 1);
}

TEST(OutputMetrics, NonFiniteLogitsAreCountedApart) {
  const float inf = std::numeric_limits<float>::infinity();
  const OutputMetrics metrics = MetricsOf({{std::nanf(""), inf, -inf, 1}, {1, 0, 1, 1}});
  EXPECT_EQ(metrics.non_finite, 3);
  EXPECT_EQ(metrics.count, 1);
  EXPECT_EQ(metrics.positives, 1);
  EXPECT_NEAR(metrics.LogLoss(), std::log1p(std::exp(-1.0)), 1e-9);
}

TEST(OutputMetrics, EmptyMetricsAreNaN) {
  const OutputMetrics metrics;
  EXPECT_TRUE(std::isnan(metrics.LogLoss()));
  EXPECT_TRUE(std::isnan(metrics.Accuracy()));
  EXPECT_TRUE(std::isnan(metrics.Calibration()));
  EXPECT_TRUE(std::isnan(metrics.NormalizedEntropy()));
}

// Any split, order and serialisation gives bit-identical metrics.
TEST(OutputMetrics, DoesNotDependOnPlacement) {
  const Samples samples = Draw(30000, 3, 12);  // some beyond +-16
  const OutputMetrics whole = MetricsOf(samples);
  for (const size_t parts : {2u, 3u, 7u}) {
    OutputMetrics merged;
    for (size_t part = parts; part-- > 0;) {
      OutputMetrics mine;
      for (size_t i = samples.logits.size(); i-- > 0;)
        if (i % parts == part) mine.Add({&samples.logits[i], 1}, {&samples.labels[i], 1});
      merged.Merge(OutputMetrics::FromIntegers(mine.ToIntegers()));
    }
    EXPECT_TRUE(merged == whole) << parts << " parts";
  }
}

// Checkpoints of earlier versions hold the inner bins only.
TEST(OutputMetrics, ReadsTheIntegersOfEarlierVersions) {
  const OutputMetrics metrics = MetricsOf(Draw(1000, 7));
  const std::vector<int64_t> integers = metrics.ToIntegers();
  constexpr auto kOuter = std::ptrdiff_t{BinaryHistogram::kNumOuterBins};
  constexpr auto kInner = std::ptrdiff_t{BinaryHistogram::kNumInnerBins};
  std::vector<int64_t> earlier = {0x315254454d4e5a52};  // "RZNMETR1"
  const auto positive = integers.begin() + 1, negative = positive + BinaryHistogram::kNumBins;
  earlier.insert(earlier.end(), positive + kOuter, positive + kOuter + kInner);
  earlier.insert(earlier.end(), negative + kOuter, negative + kOuter + kInner);
  earlier.insert(earlier.end(), integers.end() - 8, integers.end());
  EXPECT_EQ(earlier.size(), size_t{1 + 2 * 65536 + 8});
  EXPECT_TRUE(OutputMetrics::FromIntegers(earlier) == metrics);
  earlier.pop_back();
  EXPECT_THROW(OutputMetrics::FromIntegers(earlier), Error);
}

TEST(OutputMetrics, InvalidIntegersAreErrors) {
  std::vector<int64_t> integers = MetricsOf({{1}, {1}}).ToIntegers();
  EXPECT_EQ(integers.size(), OutputMetrics::kNumIntegers);
  EXPECT_THROW(OutputMetrics::FromIntegers({integers.data(), integers.size() - 1}), Error);
  EXPECT_THROW(OutputMetrics::FromIntegers({}), Error);
  integers[0] ^= 1;
  EXPECT_THROW(OutputMetrics::FromIntegers(integers), Error);
}

TEST(OutputMetrics, SamplesWithoutALabelAreLeftOut) {
  const float missing = std::numeric_limits<float>::quiet_NaN();
  OutputMetrics with, without;
  with.Add(std::vector<float>{1, -3, 2, 0.5f}, std::vector<float>{1, missing, 0, missing});
  without.Add(std::vector<float>{1, 2}, std::vector<float>{1, 0});
  EXPECT_TRUE(with == without);
  // But a model whose predictions are not finite is broken, with or without a label.
  with.Add(std::vector<float>{missing}, std::vector<float>{missing});
  EXPECT_EQ(with.non_finite, 1);
}

}  // namespace
}  // namespace renzan
