#pragma once

// The metrics that can decide when training stops and which model is kept
// (training.early_stopping.metric).

#include <string>
#include <vector>

#include "renzan/model/metrics.h"

namespace renzan {

struct EvaluationMetric {
  const char* name;
  double (*value)(const BinaryMetrics&);  // NaN if undefined, as for one class
  bool more_is_better;
};

std::vector<std::string> EvaluationMetricNames();

// Null for an unknown name.
const EvaluationMetric* FindEvaluationMetric(const std::string& name);

}  // namespace renzan
