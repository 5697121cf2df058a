#include "renzan/model/weighted_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

struct WeightedSamples {
  std::vector<float> logits, labels, weights;
};

// `scale`: of the weights.
WeightedSamples DrawWeighted(size_t n, float scale) {
  WeightedSamples samples;
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block words = Philox::Draw(3, i);
    samples.logits.push_back(static_cast<float>(2 * Philox::Normal(words[0], words[1])) - 1);
    samples.labels.push_back(words[2] % 4 == 0 ? 1.0f : 0.0f);
    samples.weights.push_back(scale * Philox::Uniform(words[3]));
  }
  return samples;
}

double MaxWeightOf(const std::vector<float>& values) {
  return *std::max_element(values.begin(), values.end());
}

WeightedMetrics WeightedMetricsOf(const WeightedSamples& samples) {
  WeightedMetrics metrics(MaxWeightOf(samples.weights));
  metrics.Add(samples.logits, samples.labels, samples.weights);
  return metrics;
}

// The definitions, sample by sample and pair by pair, in double precision.
TEST(WeightedMetrics, AreThoseOfTheDefinitions) {
  // Importance weights are often small numbers that add up to 1.
  for (const float scale : {1.0f, 1e-6f, 3e5f}) {
    const WeightedSamples s = DrawWeighted(3000, scale);
    const WeightedMetrics metrics = WeightedMetricsOf(s);
    double weight = 0, positive = 0, loss = 0, prediction = 0, correct = 0, won = 0;
    for (size_t i = 0; i < s.logits.size(); ++i) {
      const double w = s.weights[i], p = 1 / (1 + std::exp(-double{s.logits[i]}));
      const bool y = s.labels[i] > 0;
      weight += w;
      positive += y ? w : 0;
      prediction += w * p;
      correct += (s.logits[i] > 0) == y ? w : 0;
      loss -= w * std::log(y ? p : 1 - p);
      if (!y) continue;
      for (size_t j = 0; j < s.logits.size(); ++j) {
        if (s.labels[j] > 0) continue;
        const double tie = s.logits[i] == s.logits[j] ? 0.5 : 0;
        won += w * s.weights[j] * (s.logits[i] > s.logits[j] ? 1 : tie);
      }
    }
    const double rate = positive / weight;
    EXPECT_NEAR(metrics.SumOfWeights() / weight, 1, 1e-8);
    EXPECT_NEAR(metrics.LogLoss(), loss / weight, 1e-6);
    EXPECT_NEAR(metrics.Accuracy(), correct / weight, 1e-8);
    EXPECT_NEAR(metrics.Calibration(), prediction / positive, 1e-6);
    EXPECT_NEAR(metrics.NormalizedEntropy(),
                loss / weight / -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate)), 1e-6);
    // Logits in one bin count as ties.
    EXPECT_NEAR(metrics.Auc(), won / (positive * (weight - positive)), 3e-4);
  }
}

TEST(WeightedMetrics, EqualWeightsGiveThePlainMetrics) {
  WeightedSamples s = DrawWeighted(3000, 1);
  OutputMetrics plain;
  plain.Add(s.logits, s.labels);
  s.weights.assign(s.weights.size(), 0.3f);
  const WeightedMetrics metrics = WeightedMetricsOf(s);
  EXPECT_DOUBLE_EQ(metrics.LogLoss(), plain.LogLoss());
  EXPECT_DOUBLE_EQ(metrics.Auc(), plain.Auc());
  EXPECT_DOUBLE_EQ(metrics.Accuracy(), plain.Accuracy());
  EXPECT_DOUBLE_EQ(metrics.Calibration(), plain.Calibration());
  EXPECT_DOUBLE_EQ(metrics.NormalizedEntropy(), plain.NormalizedEntropy());
}

// Integer weights are repetitions, and 0 leaves a sample out.
TEST(WeightedMetrics, AWeightOfTwoIsTheSampleTwice) {
  WeightedSamples s = DrawWeighted(500, 1), repeated;
  for (size_t i = 0; i < s.logits.size(); ++i) {
    s.weights[i] = static_cast<float>(i % 3);
    for (size_t times = 0; times < i % 3; ++times) {
      repeated.logits.push_back(s.logits[i]);
      repeated.labels.push_back(s.labels[i]);
    }
  }
  OutputMetrics plain;
  plain.Add(repeated.logits, repeated.labels);
  const WeightedMetrics metrics = WeightedMetricsOf(s);
  EXPECT_DOUBLE_EQ(metrics.LogLoss(), plain.LogLoss());
  EXPECT_DOUBLE_EQ(metrics.Auc(), plain.Auc());
  EXPECT_DOUBLE_EQ(metrics.SumOfWeights(), static_cast<double>(plain.count));
}

TEST(WeightedMetrics, MergeExactlyInAnyOrder) {
  const WeightedSamples s = DrawWeighted(1000, 1.7f);
  const double max = MaxWeightOf(s.weights);
  const WeightedMetrics whole = WeightedMetricsOf(s);
  for (const size_t step : {size_t{1}, size_t{7}}) {
    std::vector<WeightedMetrics> parts(3, WeightedMetrics(max));
    for (size_t i = 0; i < s.logits.size(); ++i) {
      const size_t at = (i * step) % s.logits.size();  // 7 and 1000 have no common divisor
      parts[i % 3].Add({&s.logits[at], 1}, {&s.labels[at], 1}, {&s.weights[at], 1});
    }
    WeightedMetrics merged(max);
    for (const WeightedMetrics& part : parts) merged.Merge(part.sums());
    EXPECT_TRUE(std::equal(merged.sums().begin(), merged.sums().end(), whole.sums().begin()));
    EXPECT_EQ(merged.Auc(), whole.Auc());
  }
}

TEST(WeightedMetrics, WithoutWeightThereIsNoScore) {
  WeightedMetrics metrics(0);
  const std::vector<float> logits = {1, -1}, labels = {1, 0}, weights = {0, 0};
  metrics.Add(logits, labels, weights);
  EXPECT_TRUE(std::isnan(metrics.LogLoss()));
  EXPECT_TRUE(std::isnan(metrics.Auc()));
  EXPECT_TRUE(std::isnan(metrics.NormalizedEntropy()));
  EXPECT_TRUE(std::isnan(metrics.Calibration()));
}

}  // namespace
}  // namespace renzan
