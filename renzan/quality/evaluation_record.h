#pragma once

// Tracks the evaluations of a run: the best step, and the number of evaluations without
// improvement. Decides when training stops early and which step's model is kept. It is saved with
// every checkpoint and is a pure function of the observed metrics, so every worker decides the
// same. Not thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "renzan/model/evaluation.h"

namespace renzan {

struct EarlyStoppingConfig;

class EvaluationRecord {
 public:
  // `meaning` identifies the metric and the rows; records with different meanings cannot be
  // compared. `weighted`: whether rows count as much as their weights.
  explicit EvaluationRecord(std::string meaning = "", bool weighted = false)
      : meaning_(std::move(meaning)), weighted_(weighted) {}

  // Adds the evaluation after `step` steps, which has what the configured metric is read from.
  // Returns true if it is the best so far. Of equal values the first is the best; a value that is
  // not finite never is. Throws kData if the metric is undefined because data.eval holds only one
  // class.
  bool Observe(const EarlyStoppingConfig& config, int64_t step, const Evaluation& evaluation);

  // Whether the patience is exhausted.
  bool StopsEarly(const EarlyStoppingConfig& config) const;

  // Counts evaluations without improvement anew.
  void ResetPatience() { without_improvement_ = 0; }

  bool empty() const { return evaluations_ == 0; }
  int64_t best_step() const { return best_step_; }  // -1: none yet
  double best_value() const { return best_value_; }
  // "auc", or "weighted auc".
  std::string MetricName(const EarlyStoppingConfig& config) const;

  // An empty record with the same meaning.
  EvaluationRecord Emptied() const { return EvaluationRecord(meaning_, weighted_); }

  // The record as it was after the evaluation of its best step.
  EvaluationRecord AtItsBest() const;

  // "the best so far", or "auc was 0.79310 at step 200, 2 evaluations ago".
  std::string Describe(const EarlyStoppingConfig& config) const;

  // For checkpoints: a digest of the meaning, the number of evaluations, the best one's step and
  // number, its value and the reference value for improvements (bits of float64), and the number of
  // evaluations since the last improvement.
  std::vector<int64_t> ToIntegers() const;
  // Restores a saved record if it has the same meaning, else returns false. Throws Error kData.
  bool Restore(std::span<const int64_t> integers);

 private:
  int64_t MeaningDigest() const;

  std::string meaning_;
  bool weighted_ = false;
  int64_t evaluations_ = 0;
  int64_t best_step_ = -1;
  int64_t best_evaluation_ = 0;  // its number, from 1
  double best_value_ = 0;
  double reference_value_ = 0;
  int64_t without_improvement_ = 0;
};

}  // namespace renzan
