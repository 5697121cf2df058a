#pragma once

// The metrics that can decide when training stops and which model is kept
// (training.early_stopping.metric).

#include <string>
#include <vector>

#include "renzan/model/metrics.h"
#include "renzan/model/ranking_metrics.h"
#include "renzan/model/weighted_metrics.h"

namespace renzan {

struct EvaluationMetric {
  const char* name;
  // NaN if undefined, as for one class. Null for a metric of rankings.
  double (*value)(const BinaryMetrics&);
  double (*weighted)(const WeightedMetrics&);
  bool more_is_better;
  Loss of;  // which outputs have it
  // Instead of both, of a metric of rankings at a rank k (training.ranking).
  double (*ranked)(const RankingMetrics&, int64_t k) = nullptr;
};

// Of outputs of every loss, and "", which stands for DefaultMetric().
std::vector<std::string> EvaluationMetricChoices();
// Of outputs that learn by this loss; the first is DefaultMetric().
std::vector<std::string> EvaluationMetricNames(Loss loss);
std::string DefaultMetric(Loss loss);

// "" stands for the default of binary cross-entropy. Null for an unknown name.
const EvaluationMetric* FindEvaluationMetric(const std::string& name);

// Whether items have to be ranked for it.
bool IsRankingMetric(const std::string& name);

}  // namespace renzan
