#pragma once

// Transforms of the numbers of dense features, and the constants that some of them take from the
// training data. A dataset records each as text, and a test set that is imported with it uses the
// same constants.
//
//   none              x
//   log               log(max(x, 0) + 1)
//   standardize:M:D   (x - M) / D, with the mean M and the standard deviation D
//   minmax:L:H        (x - L) / (H - L), with the smallest value L and the largest H
//   buckets:N:B1:...  the share of the bounds B that are at most x: bounds are quantiles, N buckets
//                     with as many values each as repeated values allow
//   clip:L:H,...      max(L, min(x, H)) before one of these
//   fill:X,...        x is X where it is missing, before all of these; otherwise the result is 0
//   fill:mean:M,...   the same with the M that the clip and the transform make the mean of their
//                     results, so that missing values are neutral; for buckets, with the median
//
// Constants that are not known yet are omitted: "standardize", "buckets:32", "fill:mean,log".

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace renzan {

class DenseTransform {
 public:
  DenseTransform() = default;  // none
  // Nothing if `text` is not a transform.
  static std::optional<DenseTransform> Parse(std::string_view text);
  // Of a text that Parse() accepts.
  static DenseTransform ParseKnown(std::string_view text);

  std::string text() const;
  // The transform without constants computed from data, to compare what was requested.
  std::string kind() const;
  // Whether constants have to be computed first.
  bool needs_constants() const { return needs_constants_ || (fill_is_mean_ && !fill_); }
  // These must not be called while constants are missing.
  float Apply(double x) const;
  // The same of many.
  void Apply(std::span<const double> x, std::span<float> transformed) const;
  float OfMissing() const { return fill_ ? Apply(*fill_) : 0.0f; }

 private:
  friend class DenseFit;

  enum class Kind { kNone, kLog, kStandardize, kMinmax, kBuckets };

  double Clip(double x) const;
  static double Log(double x);
  bool ParseFill(std::string_view text);

  bool fill_is_mean_ = false;
  std::optional<double> fill_;  // once known
  Kind kind_ = Kind::kNone;
  std::vector<double> clip_;       // {lowest, highest}, or empty
  int64_t num_buckets_ = 0;        // of "buckets"
  std::vector<double> constants_;  // {M, D}, {L, H}, or the bounds, increasing
  bool needs_constants_ = false;
};

inline constexpr int64_t kMinBuckets = 2, kMaxBuckets = 1024;

// Computes the constants of one feature in one pass, in constant memory. The same values in the
// same order give the same constants. Quantiles are exact for up to 100,000 values, and beyond that
// those of a uniform sample of this size.
class DenseFit {
 public:
  explicit DenseFit(DenseTransform transform) : transform_(std::move(transform)) {}

  void Add(double x);
  // The transform with its constants.
  DenseTransform Finish();

 private:
  DenseTransform transform_;
  uint64_t count_ = 0;
  double mean_ = 0;     // for log: of the results
  double squares_ = 0;  // of deviations from the mean
  double low_ = 0, high_ = 0;
  std::vector<double> sample_;
};

}  // namespace renzan
