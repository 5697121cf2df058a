#include "renzan/model/evaluation_metric.h"

namespace renzan {
namespace {

constexpr EvaluationMetric kMetrics[] = {
    {"log_loss", [](const BinaryMetrics& m) { return m.LogLoss(); },
     [](const WeightedMetrics& m) { return m.LogLoss(); }, false},
    {"auc", [](const BinaryMetrics& m) { return m.Auc(); },
     [](const WeightedMetrics& m) { return m.Auc(); }, true},
    {"normalized_entropy", [](const BinaryMetrics& m) { return m.NormalizedEntropy(); },
     [](const WeightedMetrics& m) { return m.NormalizedEntropy(); }, false},
    {"hr", nullptr, nullptr, true, [](const RankingMetrics& m, int64_t k) { return m.HitRate(k); }},
    {"ndcg", nullptr, nullptr, true, [](const RankingMetrics& m, int64_t k) { return m.Ndcg(k); }},
    {"mrr", nullptr, nullptr, true,
     [](const RankingMetrics& m, int64_t) { return m.ReciprocalRank(); }},
};

}  // namespace

std::vector<std::string> EvaluationMetricNames() {
  std::vector<std::string> names;
  for (const EvaluationMetric& metric : kMetrics) names.push_back(metric.name);
  return names;
}

const EvaluationMetric* FindEvaluationMetric(const std::string& name) {
  for (const EvaluationMetric& metric : kMetrics)
    if (name == metric.name) return &metric;
  return nullptr;
}

bool IsRankingMetric(const std::string& name) {
  const EvaluationMetric* const metric = FindEvaluationMetric(name);
  return metric != nullptr && metric->ranked != nullptr;
}

}  // namespace renzan
