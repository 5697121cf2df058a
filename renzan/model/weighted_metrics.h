#pragma once

// Quality of predictions in which each sample counts as much as its weight, as with
// scikit-learn's sample_weight. Like OutputMetrics it adds integers only (WeightUnits), so the
// results do not depend on the order of the samples or on how they are split among workers. Not
// thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/model/metrics.h"
#include "renzan/model/weight_units.h"

namespace renzan {

class WeightedMetrics {
 public:
  // `max_weight`: at least the weight of every sample that any worker adds; not negative.
  explicit WeightedMetrics(double max_weight);

  // [batch] each. Non-finite logits are skipped.
  void Add(std::span<const float> logits, std::span<const float> labels,
           std::span<const float> weights);

  // The same of predicted numbers.
  void AddNumbers(std::span<const float> predictions, std::span<const float> labels,
                  std::span<const float> weights);
  // Whichever of them the loss asks for.
  void AddBy(Loss loss, std::span<const float> outputs, std::span<const float> labels,
             std::span<const float> weights);

  // All accumulators, which workers exchange as bytes; Merge adds those of another one with the
  // same `max_weight`.
  std::span<const FixedSum> sums() const { return sums_; }
  void Merge(std::span<const FixedSum> sums);

  double SumOfWeights() const;
  // As in OutputMetrics; NaN where the weights that they divide by are 0.
  double LogLoss() const;
  double Auc() const;
  double Accuracy() const;
  double Calibration() const;
  double NormalizedEntropy() const;
  double MeanSquaredError() const;
  double Rmse() const;
  double Mae() const;
  double MeanPrediction() const;
  double MeanLabel() const;

 private:
  // The last four are those of numbers, each a whole part and a fraction (ExactSum).
  enum Sum {
    kWeight,
    kPositive,
    kCorrect,
    kLoss,
    kPrediction,
    kSquaredError,
    kAbsoluteError = kSquaredError + 2,
    kPredictedNumber = kAbsoluteError + 2,
    kLabelNumber = kPredictedNumber + 2,
    kNumSums = kLabelNumber + 2
  };
  double MeanNumber(Sum sum) const;
  FixedSum Get(Sum sum) const { return sums_[static_cast<size_t>(sum)]; }
  // Weights by logit, in BinaryHistogram's bins, follow the sums.
  static size_t Bin(bool positive, float logit);

  WeightUnits units_;
  std::vector<FixedSum> sums_;
};

}  // namespace renzan
