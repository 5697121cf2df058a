#include "renzan/model/evaluation_metric.h"

namespace renzan {
namespace {

constexpr EvaluationMetric kMetrics[] = {
    {"log_loss", [](const BinaryMetrics& m) { return m.LogLoss(); },
     [](const WeightedMetrics& m) { return m.LogLoss(); }, false, Loss::kBinaryCrossEntropy},
    {"auc", [](const BinaryMetrics& m) { return m.Auc(); },
     [](const WeightedMetrics& m) { return m.Auc(); }, true, Loss::kBinaryCrossEntropy},
    {"normalized_entropy", [](const BinaryMetrics& m) { return m.NormalizedEntropy(); },
     [](const WeightedMetrics& m) { return m.NormalizedEntropy(); }, false,
     Loss::kBinaryCrossEntropy},
    {"hr", nullptr, nullptr, true, Loss::kBinaryCrossEntropy,
     [](const RankingMetrics& m, int64_t k) { return m.HitRate(k); }},
    {"ndcg", nullptr, nullptr, true, Loss::kBinaryCrossEntropy,
     [](const RankingMetrics& m, int64_t k) { return m.Ndcg(k); }},
    {"mrr", nullptr, nullptr, true, Loss::kBinaryCrossEntropy,
     [](const RankingMetrics& m, int64_t) { return m.ReciprocalRank(); }},
    {"rmse", [](const BinaryMetrics& m) { return m.Rmse(); },
     [](const WeightedMetrics& m) { return m.Rmse(); }, false, Loss::kSquaredError},
    {"mae", [](const BinaryMetrics& m) { return m.Mae(); },
     [](const WeightedMetrics& m) { return m.Mae(); }, false, Loss::kSquaredError},
};

}  // namespace

std::vector<std::string> EvaluationMetricChoices() {
  std::vector<std::string> names = {""};
  for (const EvaluationMetric& metric : kMetrics) names.push_back(metric.name);
  return names;
}

std::vector<std::string> EvaluationMetricNames(Loss loss) {
  std::vector<std::string> names;
  for (const EvaluationMetric& metric : kMetrics)
    if (metric.of == loss) names.push_back(metric.name);
  return names;
}

std::string DefaultMetric(Loss loss) { return EvaluationMetricNames(loss).front(); }

const EvaluationMetric* FindEvaluationMetric(const std::string& name) {
  if (name.empty()) return FindEvaluationMetric(DefaultMetric(Loss::kBinaryCrossEntropy));
  for (const EvaluationMetric& metric : kMetrics)
    if (name == metric.name) return &metric;
  return nullptr;
}

bool IsRankingMetric(const std::string& name) {
  const EvaluationMetric* const metric = FindEvaluationMetric(name);
  return metric != nullptr && metric->ranked != nullptr;
}

}  // namespace renzan
