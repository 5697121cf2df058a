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

}  // namespace renzan
