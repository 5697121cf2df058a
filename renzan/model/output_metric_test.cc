#include "renzan/model/output_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace renzan {
namespace {

using ::testing::ElementsAre;

OutputMetrics TwoLogits(const std::vector<float>& labels) {
  OutputMetrics metrics;
  metrics.Add(std::vector<float>{2, -1}, labels);
  return metrics;
}

std::vector<std::string> Shown(OutputKind kind, const OutputMetrics& metrics) {
  std::vector<std::string> names;
  ForEachMetric(kind, metrics, [&](const OutputMetric& metric, double) {
    if (metric.words != nullptr) names.push_back(metric.name);
  });
  return names;
}

TEST(OutputMetric, OutputsHaveThoseThatMeanSomething) {
  const OutputMetrics logits = TwoLogits({1, 0});
  EXPECT_THAT(Shown(OutputKind::kProbability, logits),
              ElementsAre("auc", "log_loss", "normalized_entropy", "calibration", "accuracy"));
  EXPECT_THAT(Shown(OutputKind::kScore, logits), ElementsAre("auc"));
  EXPECT_THAT(Shown(OutputKind::kScore, TwoLogits({1, 1})), ElementsAre());
  EXPECT_THAT(Shown(OutputKind::kNumber, logits),
              ElementsAre("rmse", "mae", "mean_prediction", "mean_label"));
}

TEST(OutputMetric, OutputsAreComparedByTheirOwn) {
  EXPECT_THAT(
      ComparedMetricNames(OutputKind::kProbability),
      ElementsAre("auc", "log_loss", "normalized_entropy", "group_auc", "hr", "ndcg", "mrr"));
  EXPECT_THAT(ComparedMetricNames(OutputKind::kScore),
              ElementsAre("auc", "group_auc", "hr", "ndcg", "mrr"));
  EXPECT_THAT(ComparedMetricNames(OutputKind::kNumber), ElementsAre("rmse", "mae"));
  for (const OutputKind kind :
       {OutputKind::kProbability, OutputKind::kScore, OutputKind::kNumber}) {
    ASSERT_NE(FindComparedMetric(DefaultMetric(kind)), nullptr);
    EXPECT_TRUE(FindComparedMetric(DefaultMetric(kind))->IsOf(kind));
  }
  EXPECT_EQ(FindComparedMetric("accuracy"), nullptr);
  EXPECT_TRUE(IsRankingMetric("ndcg"));
  EXPECT_FALSE(IsRankingMetric("auc"));
}

// The loss of each kind has one tag in training, and weights give what counting gives.
TEST(OutputMetric, AreReadAlike) {
  OutputMetrics once = TwoLogits({1, 0});
  WeightedMetrics weighted(1);
  weighted.Add(std::vector<float>{2, -1}, std::vector<float>{1, 0}, std::vector<float>{1, 1});
  const OutputMetrics rows_once = once;
  const WeightedMetrics rows_weighted = weighted;
  once.AddNumbers(std::vector<float>{3, 2}, std::vector<float>{1, 4});
  weighted.AddNumbers(std::vector<float>{3, 2}, std::vector<float>{1, 4}, std::vector<float>{1, 1});
  for (const OutputKind kind :
       {OutputKind::kProbability, OutputKind::kScore, OutputKind::kNumber}) {
    std::multiset<std::string> tags;
    for (const OutputMetric& metric : AllMetrics()) {
      if (metric.tag != nullptr && metric.IsTrained(kind)) tags.insert(metric.tag);
      if (metric.value == nullptr) continue;
      EXPECT_FALSE(std::isnan(metric.Of(once))) << metric.name;
      if (!metric.IsOf(kind)) continue;
      const bool numbers = kind == OutputKind::kNumber;
      EXPECT_NEAR(metric.Of(numbers ? once : rows_once),
                  metric.Of(numbers ? weighted : rows_weighted), 1e-6)
          << metric.name;
    }
    EXPECT_EQ(tags.count("loss"), 1u);
    EXPECT_EQ(std::set(tags.begin(), tags.end()).size(), tags.size());
  }
}

}  // namespace
}  // namespace renzan
