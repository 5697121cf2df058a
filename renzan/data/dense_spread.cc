#include "renzan/data/dense_spread.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan {
namespace {

// The root mean square of an input, squared and times the learning rate, bounds how far a step
// overshoots: beyond this, no learning rate that suits the other inputs is small enough.
constexpr double kTooLarge = 100;
// Beyond this root mean square, a feature that can be trained on is learned better after a
// transform, like those that are about 1.
constexpr double kUnscaled = 10;
// Below this standard deviation, a feature's weight would have to grow far beyond all others.
constexpr double kTooSmall = 1e-3;
// A largest value this many times the root mean square indicates a long tail, as in counts.
constexpr double kLongTail = 5;
constexpr size_t kMaxNamed = 8;

}  // namespace

void DenseSpread::Add(std::span<const float> dense) {
  const double weight = 1 / static_cast<double>(++rows_);
  if (rows_ == 1)
    for (size_t d = 0; d < dense.size(); ++d) features_[d].min = features_[d].max = dense[d];
  for (size_t d = 0; d < dense.size(); ++d) {
    Feature& feature = features_[d];
    const double x = dense[d];
    feature.min = std::min(feature.min, x);
    feature.max = std::max(feature.max, x);
    const double deviation = x - feature.mean;
    feature.mean += deviation * weight;
    feature.squares += deviation * (x - feature.mean);
  }
}

double DenseSpread::Deviation(const Feature& feature) const {
  return std::sqrt(feature.squares / static_cast<double>(std::max<uint64_t>(rows_, 1)));
}

double DenseSpread::Magnitude(const Feature& feature) const {
  return std::hypot(feature.mean, Deviation(feature));
}

std::string DenseSpread::DescribeTooLarge(const std::string& name, const Feature& feature) const {
  return fmt::format("'{}' (about {:.2g}: transform: {})", Escape(name), Magnitude(feature),
                     HelpfulTransform(feature));
}

std::string DenseSpread::HelpfulTransform(const Feature& feature) const {
  const double rms = Magnitude(feature);
  if (feature.min >= 0 && feature.max > std::max(kUnscaled, kLongTail * rms)) return "log";
  const bool varies_too_little = rms > 0 && Deviation(feature) < kTooSmall;
  return rms > kUnscaled || varies_too_little ? "standardize" : "none";
}

std::string DenseSpread::HelpfulTransform(size_t feature) const {
  return HelpfulTransform(features_[feature]);
}

std::string DenseSpread::TooLarge(std::span<const std::string> names) const {
  const auto largest = std::max_element(
      features_.begin(), features_.end(),
      [this](const Feature& a, const Feature& b) { return Magnitude(a) < Magnitude(b); });
  if (largest == features_.end() || Magnitude(*largest) <= kTooLarge) return "";
  return DescribeTooLarge(names[static_cast<size_t>(largest - features_.begin())], *largest);
}

std::string DenseSpread::Problem(const std::string& name, const Feature& feature) const {
  const double deviation = Deviation(feature), rms = Magnitude(feature);
  if (rms > kTooLarge) return DescribeTooLarge(name, feature);
  if (rms == 0 || deviation >= kTooSmall) return "";
  if (feature.min == feature.max)
    return fmt::format("'{}' ({:.4g} in every row: role: skip)", Escape(name), feature.mean);
  return fmt::format("'{}' (differs by {:.1g}: transform: standardize)", Escape(name), deviation);
}

std::string DenseSpread::Problem(const DenseVector& vector) const {
  int64_t constant = 0, wrong = 0;
  double largest = 0;
  for (const Feature& feature :
       std::span(features_).subspan(vector.first, static_cast<size_t>(vector.dimension))) {
    const double rms = Magnitude(feature);
    largest = std::max(largest, rms);
    constant += feature.min == feature.max;
    wrong += rms > kTooLarge || (rms > 0 && Deviation(feature) < kTooSmall);
  }
  if (wrong == 0) return "";
  const std::string name = Escape(vector.name);
  if (constant == vector.dimension)
    return fmt::format("'{}' (a vector, the same in every row: role: skip)", name);
  return fmt::format("'{}' ({} of the vector's {}{}: transform: standardize)", name, wrong,
                     Counted(vector.dimension, "number"),
                     largest > kTooLarge ? fmt::format(", the largest about {:.2g}", largest) : "");
}

std::string DenseSpread::Advice(std::span<const std::string> names,
                                std::span<const DenseVector> vectors) const {
  std::vector<std::string> found;
  for (size_t d = 0; d < features_.size();) {
    const auto vector = std::find_if(vectors.begin(), vectors.end(),
                                     [&](const DenseVector& other) { return other.first == d; });
    const bool is_vector = vector != vectors.end();
    std::string problem = is_vector ? Problem(*vector) : Problem(names[d], features_[d]);
    if (!problem.empty()) found.push_back(std::move(problem));
    d += is_vector ? static_cast<size_t>(vector->dimension) : 1;
  }
  if (found.empty()) return "";
  const size_t more = found.size() - std::min(found.size(), kMaxNamed);
  found.resize(found.size() - more);
  return fmt::format(
      "dense features whose values are too large, or vary too little, to be trained on as they "
      "are: {}{}. Import them again as suggested for each (for format criteo: --dense log; ids "
      "belong to role categorical)",
      fmt::join(found, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace renzan
