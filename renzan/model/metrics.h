#pragma once

// Quality of predictions, of 0 and 1 (accumulated from logits and labels) or of numbers. Every
// accumulator is an exact integer (histogram counts, fixed-point sums), so the results do not
// depend on the order of the samples or on how they are split among threads and workers.
//
// Not thread-safe: use one per virtual worker or thread and merge them at the end.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/model/error_sums.h"
#include "renzan/model/loss.h"

namespace renzan {

// Counts of both classes by logit: in [-16, 16) in 65536 equal bins, so that logits closer than
// 1/2048 may count as ties; beyond, up to +-65536, in 1024 bins per octave (as far apart as a
// thousandth of the logit), and one more bin on each side for what is still larger.
struct BinaryHistogram {
  static constexpr int kNumInnerBins = 65536;
  static constexpr double kMaxInnerLogit = 16;
  // On each side: 12 octaves from 16 to 65536, and what lies beyond.
  static constexpr int kNumOuterBins = 12 * 1024 + 1;
  static constexpr int kNumBins = kNumInnerBins + 2 * kNumOuterBins;

  std::vector<int64_t> positive = std::vector<int64_t>(kNumBins);
  std::vector<int64_t> negative = std::vector<int64_t>(kNumBins);

  // Bins are in the order of logits. `logit` must be finite.
  static int BinOf(float logit);
  // `logit` must be finite; a label above 0.5 is positive.
  void Add(float logit, float label);
  void Merge(const BinaryHistogram& other);

  // The probability that a positive sample ranks above a negative one, a tie counting half. NaN
  // when one class is absent.
  double Auc() const;

  bool operator==(const BinaryHistogram&) const = default;
};

// A sum of values in units of 2^-32.
using FixedSum = __int128;
double FromFixed(FixedSum sum);

// One sample's binary cross-entropy in nats, at most 2^30, and its predicted probability, both in
// units of 2^-32. `logit` must be finite.
struct FixedScore {
  int64_t loss, prediction;
};
FixedScore ScoreSample(float logit, bool positive);

// In nats, of a rate of positives in (0, 1).
double Entropy(double rate);

// Of an output that predicts numbers (Loss::kSquaredError), `numbers`, `count` and `non_finite`
// only.
struct OutputMetrics {
  BinaryHistogram histogram;
  int64_t count = 0;  // samples with a finite logit; others count only in `non_finite`
  int64_t positives = 0;
  int64_t correct = 0;      // (logit > 0) == (label > 0.5)
  int64_t non_finite = 0;   // NaN and infinite logits
  FixedSum loss = 0;        // binary cross-entropy in nats
  FixedSum prediction = 0;  // predicted probabilities
  ErrorSums numbers;

  // [batch] each. A sample whose label is NaN, because it has none, counts only if its logit is not
  // finite.
  void Add(std::span<const float> logits, std::span<const float> labels);
  // The same of predicted numbers.
  void AddNumbers(std::span<const float> predictions, std::span<const float> labels);
  // Whichever of them the loss asks for.
  void AddBy(Loss loss, std::span<const float> outputs, std::span<const float> labels);
  void Merge(const OutputMetrics& other);

  // All of these are NaN if there are no samples.
  double LogLoss() const;  // mean cross-entropy
  double Auc() const { return histogram.Auc(); }
  double Accuracy() const;
  // Sum of predictions over number of positives: 1 is unbiased. NaN if there are no positives.
  double Calibration() const;
  // LogLoss over the entropy of the base rate: below 1 is better than always predicting the base
  // rate (He et al., "Practical lessons from predicting clicks on ads at Facebook", 2014). NaN when
  // one class is absent.
  double NormalizedEntropy() const;
  // Of predicted numbers.
  double MeanSquaredError() const;
  double Rmse() const;
  double Mae() const;
  double MeanPrediction() const;
  double MeanLabel() const;

  // Serialised as kNumIntegers integers, for exchange between workers and for checkpoints: a magic
  // number, the histogram's positive and negative counts, count, positives, correct, non_finite,
  // and the sums of losses and predictions, each as its lower and its upper 64 bits; then
  // `numbers`, unless they are empty. FromIntegers also reads those of earlier versions, in which
  // the outermost inner bins hold all logits beyond; it throws Error kData if `integers` is not
  // valid.
  static constexpr size_t kNumIntegers = 1 + 2 * BinaryHistogram::kNumBins + 4 + 2 * 2;
  static constexpr size_t kMaxIntegers = kNumIntegers + ErrorSums::kNumIntegers;
  std::vector<int64_t> ToIntegers() const;
  static OutputMetrics FromIntegers(std::span<const int64_t> integers);

  bool operator==(const OutputMetrics&) const = default;
};

// Over several accumulators, such as those of several threads.
int64_t NumNonFinite(std::span<const OutputMetrics> metrics);

}  // namespace renzan
