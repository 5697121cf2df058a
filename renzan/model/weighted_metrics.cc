#include "renzan/model/weighted_metrics.h"

#include <cmath>
#include <limits>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

double Ratio(FixedSum a, FixedSum b) {
  return b == 0 ? kNoScore : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

WeightedMetrics::WeightedMetrics(double max_weight)
    : units_(max_weight), sums_(kNumSums + 2 * size_t{BinaryHistogram::kNumBins}) {}

size_t WeightedMetrics::Bin(bool positive, float logit) {
  const size_t first = positive ? 0 : size_t{BinaryHistogram::kNumBins};
  return kNumSums + first + static_cast<size_t>(BinaryHistogram::BinOf(logit));
}

void WeightedMetrics::Add(std::span<const float> logits, std::span<const float> labels,
                          std::span<const float> weights) {
  CHECK(logits.size() == labels.size() && logits.size() == weights.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i]) || std::isnan(labels[i])) continue;
    const int64_t weight = units_.Of(weights[i]);
    const bool positive = labels[i] > 0.5f;
    const FixedScore score = ScoreSample(logits[i], positive);
    sums_[kWeight] += weight;
    if (positive) sums_[kPositive] += weight;
    if ((logits[i] > 0) == positive) sums_[kCorrect] += weight;
    sums_[kLoss] += FixedSum{weight} * score.loss;
    sums_[kPrediction] += FixedSum{weight} * score.prediction;
    sums_[Bin(positive, logits[i])] += weight;
  }
}

void WeightedMetrics::AddNumbers(std::span<const float> predictions, std::span<const float> labels,
                                 std::span<const float> weights) {
  CHECK(predictions.size() == labels.size() && predictions.size() == weights.size());
  ErrorSums added;
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!std::isfinite(predictions[i]) || std::isnan(labels[i])) continue;
    const int64_t weight = units_.Of(weights[i]);
    sums_[kWeight] += weight;
    added.Add(predictions[i], labels[i], weight);
  }
  const auto add = [&](Sum sum, const ExactSum& its) {
    sums_[static_cast<size_t>(sum)] += its.whole;
    sums_[static_cast<size_t>(sum) + 1] += its.fraction;
  };
  add(kSquaredError, added.squared_error);
  add(kAbsoluteError, added.absolute_error);
  add(kPredictedNumber, added.prediction);
  add(kLabelNumber, added.label);
}

void WeightedMetrics::AddBy(Loss loss, std::span<const float> outputs,
                            std::span<const float> labels, std::span<const float> weights) {
  if (loss == Loss::kSquaredError) return AddNumbers(outputs, labels, weights);
  Add(outputs, labels, weights);
}

void WeightedMetrics::Merge(std::span<const FixedSum> sums) {
  CHECK(sums.size() == sums_.size());
  for (size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
}

double WeightedMetrics::SumOfWeights() const {
  return units_.Value(static_cast<double>(Get(kWeight)));
}

double WeightedMetrics::LogLoss() const { return FromFixed(1) * Ratio(Get(kLoss), Get(kWeight)); }

double WeightedMetrics::MeanNumber(Sum sum) const {
  const size_t at = static_cast<size_t>(sum);
  if (Get(kWeight) == 0) return kNoScore;
  return ExactSum{sums_[at], sums_[at + 1]}.Value() / static_cast<double>(Get(kWeight));
}

double WeightedMetrics::MeanSquaredError() const { return MeanNumber(kSquaredError); }

double WeightedMetrics::Rmse() const { return std::sqrt(MeanSquaredError()); }

double WeightedMetrics::Mae() const { return MeanNumber(kAbsoluteError); }

double WeightedMetrics::MeanPrediction() const { return MeanNumber(kPredictedNumber); }

double WeightedMetrics::MeanLabel() const { return MeanNumber(kLabelNumber); }

double WeightedMetrics::Accuracy() const { return Ratio(Get(kCorrect), Get(kWeight)); }

double WeightedMetrics::Calibration() const {
  return FromFixed(1) * Ratio(Get(kPrediction), Get(kPositive));
}

double WeightedMetrics::NormalizedEntropy() const {
  if (Get(kPositive) == 0 || Get(kPositive) == Get(kWeight)) return kNoScore;
  return LogLoss() / Entropy(Ratio(Get(kPositive), Get(kWeight)));
}

double WeightedMetrics::Auc() const {
  // Sums may exceed what products of integers can hold; the order of these is fixed.
  double won = 0, negatives_below = 0;
  for (size_t bin = 0; bin < size_t{BinaryHistogram::kNumBins}; ++bin) {
    const auto positive = static_cast<double>(sums_[kNumSums + bin]);
    const auto negative =
        static_cast<double>(sums_[kNumSums + size_t{BinaryHistogram::kNumBins} + bin]);
    won += positive * (negatives_below + 0.5 * negative);
    negatives_below += negative;
  }
  const double pairs = static_cast<double>(Get(kPositive)) * negatives_below;
  return pairs == 0 ? kNoScore : won / pairs;
}

}  // namespace renzan
