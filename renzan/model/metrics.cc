#include "renzan/model/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kFixedOne = 0x1.0p32;
constexpr double kMaxSampleLoss = 0x1.0p30;
constexpr int64_t kMagic = 0x325254454d4e5a52;  // "RZNMETR2" in memory
// Of earlier versions, which had the inner bins only.
constexpr int64_t kInnerMagic = 0x315254454d4e5a52;  // "RZNMETR1"
constexpr size_t kNumInnerIntegers =
    OutputMetrics::kNumIntegers - 4 * size_t{BinaryHistogram::kNumOuterBins};

// Rounded to the nearest unit; `value` is not negative.
int64_t Fixed(double value) { return static_cast<int64_t>(value * kFixedOne + 0.5); }

double MeanOf(const ExactSum& sum, int64_t count) {
  return count == 0 ? kNaN : sum.Value() / static_cast<double>(count);
}

void MergeCounts(std::vector<int64_t>& into, const std::vector<int64_t>& from) {
  for (size_t bin = 0; bin < into.size(); ++bin) into[bin] += from[bin];
}

// Calls visit(pointer, bytes) on every field in the serialised order; of the histogram, on `count`
// bins from `first`.
template <typename Metrics, typename Visit>
void VisitFields(Metrics& metrics, size_t first, size_t count, const Visit& visit) {
  visit(metrics.histogram.positive.data() + first, count * sizeof(int64_t));
  visit(metrics.histogram.negative.data() + first, count * sizeof(int64_t));
  visit(&metrics.count, sizeof(metrics.count));
  visit(&metrics.positives, sizeof(metrics.positives));
  visit(&metrics.correct, sizeof(metrics.correct));
  visit(&metrics.non_finite, sizeof(metrics.non_finite));
  visit(&metrics.loss, sizeof(metrics.loss));
  visit(&metrics.prediction, sizeof(metrics.prediction));
}

}  // namespace

double FromFixed(FixedSum sum) { return static_cast<double>(sum) / kFixedOne; }

FixedScore ScoreSample(float logit, bool positive) {
  // Cross-entropy is max(x, 0) - x y + log(1 + exp(-|x|)). log1p would change the result by less
  // than a unit.
  const double x = logit;
  const double e = std::exp(-std::abs(x));
  const double loss = std::max(positive ? -x : x, 0.0) + std::log(1 + e);
  return {.loss = Fixed(std::min(loss, kMaxSampleLoss)),
          .prediction = Fixed((x > 0 ? 1 : e) / (1 + e))};
}

int BinaryHistogram::BinOf(float logit) {
  const double x = logit;
  if (x >= -kMaxInnerLogit && x < kMaxInnerLogit) {
    constexpr double kBinsPerUnit = kNumInnerBins / (2 * kMaxInnerLogit);
    return kNumOuterBins + static_cast<int>((x + kMaxInnerLogit) * kBinsPerUnit);
  }
  // The exponent and the first ten bits of the fraction number the bins of all octaves.
  constexpr int kBitsBelow = std::numeric_limits<float>::digits - 1 - 10;
  const auto number = [](float magnitude) {
    return static_cast<int>(std::bit_cast<uint32_t>(magnitude) >> kBitsBelow);
  };
  const int beyond = std::min(number(std::abs(logit)) - number(static_cast<float>(kMaxInnerLogit)),
                              kNumOuterBins - 1);
  return x > 0 ? kNumOuterBins + kNumInnerBins + beyond : kNumOuterBins - 1 - beyond;
}

double Entropy(double rate) { return -(rate * std::log(rate) + (1 - rate) * std::log1p(-rate)); }

void BinaryHistogram::Add(float logit, float label) {
  ++(label > 0.5f ? positive : negative)[static_cast<size_t>(BinOf(logit))];
}

void BinaryHistogram::Merge(const BinaryHistogram& other) {
  MergeCounts(positive, other.positive);
  MergeCounts(negative, other.negative);
}

double BinaryHistogram::Auc() const {
  // Twice the Mann-Whitney U statistic, to keep the halves of ties whole.
  __int128 twice_u = 0;
  int64_t positives = 0, negatives = 0;
  for (size_t bin = 0; bin < kNumBins; ++bin) {
    twice_u += static_cast<__int128>(positive[bin]) * (2 * negatives + negative[bin]);
    positives += positive[bin];
    negatives += negative[bin];
  }
  if (positives == 0 || negatives == 0) return kNaN;
  return static_cast<double>(twice_u) /
         (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

void OutputMetrics::Add(std::span<const float> logits, std::span<const float> labels) {
  CHECK(logits.size() == labels.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      ++non_finite;
      continue;
    }
    if (std::isnan(labels[i])) continue;
    const double x = logits[i];
    const bool positive = labels[i] > 0.5f;
    histogram.Add(logits[i], labels[i]);
    ++count;
    positives += positive ? 1 : 0;
    correct += (x > 0) == positive ? 1 : 0;
    const FixedScore score = ScoreSample(logits[i], positive);
    loss += score.loss;
    prediction += score.prediction;
  }
}

void OutputMetrics::AddNumbers(std::span<const float> predictions, std::span<const float> labels) {
  CHECK(predictions.size() == labels.size());
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!std::isfinite(predictions[i])) {
      ++non_finite;
      continue;
    }
    if (std::isnan(labels[i])) continue;
    ++count;
    numbers.Add(predictions[i], labels[i]);
  }
}

void OutputMetrics::AddBy(Loss by, std::span<const float> outputs, std::span<const float> labels) {
  if (by == Loss::kSquaredError) return AddNumbers(outputs, labels);
  Add(outputs, labels);
}

void OutputMetrics::Merge(const OutputMetrics& other) {
  histogram.Merge(other.histogram);
  count += other.count;
  positives += other.positives;
  correct += other.correct;
  non_finite += other.non_finite;
  loss += other.loss;
  prediction += other.prediction;
  numbers.Merge(other.numbers);
}

double OutputMetrics::MeanSquaredError() const { return MeanOf(numbers.squared_error, count); }

double OutputMetrics::Rmse() const { return std::sqrt(MeanSquaredError()); }

double OutputMetrics::Mae() const { return MeanOf(numbers.absolute_error, count); }

double OutputMetrics::MeanPrediction() const { return MeanOf(numbers.prediction, count); }

double OutputMetrics::MeanLabel() const { return MeanOf(numbers.label, count); }

double OutputMetrics::LogLoss() const {
  return count == 0 ? kNaN : FromFixed(loss) / static_cast<double>(count);
}

double OutputMetrics::Accuracy() const {
  return count == 0 ? kNaN : static_cast<double>(correct) / static_cast<double>(count);
}

double OutputMetrics::Calibration() const {
  return positives == 0 ? kNaN : FromFixed(prediction) / static_cast<double>(positives);
}

double OutputMetrics::NormalizedEntropy() const {
  if (positives == 0 || positives == count) return kNaN;
  return LogLoss() / Entropy(static_cast<double>(positives) / static_cast<double>(count));
}

std::vector<int64_t> OutputMetrics::ToIntegers() const {
  std::vector<int64_t> integers(kNumIntegers);
  int64_t* out = integers.data();
  *out++ = kMagic;
  VisitFields(*this, 0, BinaryHistogram::kNumBins, [&out](const void* field, size_t size) {
    std::memcpy(out, field, size);
    out += size / sizeof(int64_t);
  });
  if (numbers.empty()) return integers;
  integers.resize(kMaxIntegers);
  numbers.ToIntegers(std::span(integers).subspan(kNumIntegers));
  return integers;
}

OutputMetrics OutputMetrics::FromIntegers(std::span<const int64_t> integers) {
  const bool has_numbers = integers.size() == kMaxIntegers;
  const bool has_all = (integers.size() == kNumIntegers || has_numbers) && integers[0] == kMagic;
  const bool has_inner = integers.size() == kNumInnerIntegers && integers[0] == kInnerMagic;
  if (!has_all && !has_inner)
    Fail(ErrorCode::kData,
         "{} integers are not accumulated metrics ({} expected): do all workers run the same "
         "version?",
         integers.size(), kNumIntegers);
  const size_t first = has_all ? 0 : BinaryHistogram::kNumOuterBins;
  const size_t count = has_all ? BinaryHistogram::kNumBins : BinaryHistogram::kNumInnerBins;
  OutputMetrics metrics;
  const int64_t* in = integers.data() + 1;
  VisitFields(metrics, first, count, [&in](void* field, size_t size) {
    std::memcpy(field, in, size);
    in += size / sizeof(int64_t);
  });
  if (has_numbers) metrics.numbers = ErrorSums::FromIntegers(integers.subspan(kNumIntegers));
  return metrics;
}

int64_t NumNonFinite(std::span<const OutputMetrics> metrics) {
  int64_t sum = 0;
  for (const OutputMetrics& each : metrics) sum += each.non_finite;
  return sum;
}

}  // namespace renzan
