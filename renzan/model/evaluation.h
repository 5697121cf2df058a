#pragma once

// What an evaluation measures of one output. Plain data.

#include <cstdint>
#include <optional>

#include "renzan/model/grouped_metrics.h"
#include "renzan/model/metrics.h"
#include "renzan/model/ranking_metrics.h"
#include "renzan/model/weighted_metrics.h"

namespace renzan {

struct Evaluation {
  OutputMetrics metrics;  // of every row alike
  // Of each row as much as its weight; only of a dataset with weights.
  std::optional<WeightedMetrics> weighted = {};
  std::optional<GroupAucs> groups = {};        // where rows were grouped
  std::optional<RankingMetrics> ranking = {};  // where items were ranked
  int64_t ranked_at = 1;                       // the rank K at which `ranking` is compared
};

}  // namespace renzan
