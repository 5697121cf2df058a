#include "renzan/model/error_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/model/metrics.h"
#include "renzan/model/weighted_metrics.h"

namespace renzan {
namespace {

struct NumberSamples {
  std::vector<float> predictions, labels, weights;
};

// Labels of very different sizes, some of them missing.
NumberSamples DrawNumbers(size_t n) {
  NumberSamples samples;
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block words = Philox::Draw(5, i);
    const float size = std::pow(10.0f, static_cast<float>(words[0] % 9) - 4);
    samples.predictions.push_back(size * (2 * Philox::Uniform(words[1]) - 1));
    samples.labels.push_back(words[0] % 7 == 0 ? std::nanf("")
                                               : size * (2 * Philox::Uniform(words[2]) - 1));
    samples.weights.push_back(3 * Philox::Uniform(words[3]));
  }
  return samples;
}

OutputMetrics NumbersOf(const NumberSamples& samples, size_t begin, size_t end) {
  OutputMetrics metrics;
  metrics.AddNumbers(std::span(samples.predictions).subspan(begin, end - begin),
                     std::span(samples.labels).subspan(begin, end - begin));
  return metrics;
}

TEST(ErrorSums, MetricsMatchTheFormulas) {
  const NumberSamples samples = DrawNumbers(5000);
  const OutputMetrics metrics = NumbersOf(samples, 0, 5000);
  WeightedMetrics weighted(3);
  weighted.AddBy(Loss::kSquaredError, samples.predictions, samples.labels, samples.weights);
  for (const bool by_weight : {false, true}) {
    double rows = 0, squares = 0, errors = 0, predictions = 0, labels = 0;
    for (size_t i = 0; i < 5000; ++i) {
      if (std::isnan(samples.labels[i])) continue;
      const double w = by_weight ? samples.weights[i] : 1, x = samples.predictions[i],
                   y = samples.labels[i];
      rows += w;
      squares += w * (x - y) * (x - y);
      errors += w * std::abs(x - y);
      predictions += w * x;
      labels += w * y;
    }
    const auto near = [&](double value, double expected) {
      EXPECT_NEAR(value, expected, 1e-8 * (1 + std::abs(expected))) << by_weight;
    };
    near(by_weight ? weighted.MeanSquaredError() : metrics.MeanSquaredError(), squares / rows);
    near(by_weight ? weighted.Rmse() : metrics.Rmse(), std::sqrt(squares / rows));
    near(by_weight ? weighted.Mae() : metrics.Mae(), errors / rows);
    near(by_weight ? weighted.MeanPrediction() : metrics.MeanPrediction(), predictions / rows);
    near(by_weight ? weighted.MeanLabel() : metrics.MeanLabel(), labels / rows);
    if (!by_weight) {
      EXPECT_EQ(static_cast<double>(metrics.count), rows);
    }
  }
}

TEST(ErrorSums, DoNotDependOnPlacement) {
  const NumberSamples samples = DrawNumbers(1000);
  const OutputMetrics whole = NumbersOf(samples, 0, 1000);
  OutputMetrics merged;
  for (const auto& [begin, end] : {std::pair{700, 1000}, {0, 13}, {13, 13}, {13, 700}}) {
    const OutputMetrics part =
        NumbersOf(samples, static_cast<size_t>(begin), static_cast<size_t>(end));
    std::vector<int64_t> integers = part.ToIntegers();
    EXPECT_EQ(integers.size(),
              begin == end ? OutputMetrics::kNumIntegers : OutputMetrics::kMaxIntegers);
    integers.resize(OutputMetrics::kMaxIntegers);  // as workers exchange them
    merged.Merge(OutputMetrics::FromIntegers(integers));
  }
  EXPECT_TRUE(merged == whole);
  EXPECT_EQ(merged.Rmse(), whole.Rmse());
}

TEST(ErrorSums, SmallAndLargeErrorsAreKept) {
  const auto metrics = [](float prediction, float label) {
    OutputMetrics of;
    of.AddNumbers({&prediction, 1}, {&label, 1});
    return of;
  };
  EXPECT_NEAR(metrics(1e-6f, 0).Rmse(), 1e-6, 2e-10);
  EXPECT_EQ(metrics(-0.25f, 0).MeanPrediction(), -0.25);
  EXPECT_EQ(metrics(-1e9f, 1e9f).Rmse(), 2e9);
  EXPECT_EQ(metrics(std::numeric_limits<float>::max(), 0).Mae(), 0x1.0p31);
}

TEST(ErrorSums, WithoutRowsOrWithNonFinitePredictions) {
  EXPECT_TRUE(std::isnan(OutputMetrics().Rmse()));
  EXPECT_TRUE(std::isnan(WeightedMetrics(1).Rmse()));
  const std::vector<float> predictions = {std::nanf(""), 2}, labels = {1, 1};
  OutputMetrics metrics;
  metrics.AddNumbers(predictions, labels);
  EXPECT_EQ(metrics.non_finite, 1);
  EXPECT_EQ(metrics.Rmse(), 1);
}

}  // namespace
}  // namespace renzan
