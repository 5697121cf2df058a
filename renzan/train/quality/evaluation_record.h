#pragma once

// What the evaluations of a run have said so far: which step was the best, and for how many
// evaluations nothing has got better. Decides when training stops early and which step's model is
// kept. It is saved with every checkpoint; a pure function of the metrics it was shown, so every
// worker comes to the same decisions. Not thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "renzan/model/metrics.h"

namespace renzan {

struct EarlyStoppingConfig;

// Names of the metrics that may decide: "log_loss", "auc", "normalized_entropy".
std::vector<std::string> EvaluationMetrics();

class EvaluationRecord {
 public:
  // `meaning`: of which metric and which rows the values are. Values of other ones say nothing
  // here.
  explicit EvaluationRecord(std::string meaning = "") : meaning_(std::move(meaning)) {}

  // Takes the metrics after `step` steps. True if they are the best so far; the first of equal ones
  // stays the best, and values that are not finite never are. Throws kData where the metric cannot
  // be formed because data.eval holds one class only.
  bool Observe(const EarlyStoppingConfig& config, int64_t step, const BinaryMetrics& metrics);

  // Whether the patience is exhausted.
  bool StopsEarly(const EarlyStoppingConfig& config) const;

  bool empty() const { return evaluations_ == 0; }
  int64_t best_step() const { return best_step_; }  // -1: none yet
  double best_value() const { return best_value_; }

  // One that has seen nothing.
  EvaluationRecord Emptied() const { return EvaluationRecord(meaning_); }

  // As it was after the evaluation of its best step.
  EvaluationRecord AtItsBest() const;

  // "the best so far", or "auc was 0.79310 at step 200, 2 evaluations ago".
  std::string Describe(const EarlyStoppingConfig& config) const;

  // For checkpoints: a digest of the meaning, the number of evaluations, the best one's step and
  // number, its value and the one that an improvement is measured against (bits of float64), and
  // the number of evaluations since the last improvement.
  std::vector<int64_t> ToIntegers() const;
  // Takes up what was saved, and returns true, if it means the same. Throws Error kData.
  bool Restore(std::span<const int64_t> integers);

 private:
  int64_t MeaningDigest() const;

  std::string meaning_;
  int64_t evaluations_ = 0;
  int64_t best_step_ = -1;
  int64_t best_evaluation_ = 0;  // its number, from 1
  double best_value_ = 0;
  double reference_value_ = 0;
  int64_t without_improvement_ = 0;
};

}  // namespace renzan
