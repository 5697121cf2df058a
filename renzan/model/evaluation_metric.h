#pragma once

// The metrics that can decide when training stops and which model is kept
// (training.early_stopping.metric).

#include <string>
#include <vector>

#include "renzan/model/metrics.h"
#include "renzan/model/weighted_metrics.h"

namespace renzan {

struct EvaluationMetric {
  const char* name;
  // NaN if undefined, as for one class.
  double (*value)(const BinaryMetrics&);
  double (*weighted)(const WeightedMetrics&);
  bool more_is_better;
};

std::vector<std::string> EvaluationMetricNames();

// Null for an unknown name.
const EvaluationMetric* FindEvaluationMetric(const std::string& name);

}  // namespace renzan
