#include "renzan/data/dense_spread.h"

#include <algorithm>
#include <cmath>

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
  for (size_t d = 0; d < dense.size(); ++d) {
    Feature& feature = features_[d];
    const double x = dense[d];
    feature.min = rows_ == 1 ? x : std::min(feature.min, x);
    feature.max = rows_ == 1 ? x : std::max(feature.max, x);
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

std::string DenseSpread::Advice(std::span<const std::string> names) const {
  std::vector<std::string> found;
  for (size_t d = 0; d < features_.size(); ++d) {
    const Feature& feature = features_[d];
    const double deviation = Deviation(feature), rms = Magnitude(feature);
    const std::string name = Escape(names[d]);
    if (rms > kTooLarge) {
      found.push_back(DescribeTooLarge(names[d], feature));
    } else if (feature.min == feature.max && rms > 0) {
      found.push_back(fmt::format("'{}' ({:.4g} in every row: role: skip)", name, feature.mean));
    } else if (rms > 0 && deviation < kTooSmall) {
      found.push_back(
          fmt::format("'{}' (differs by {:.1g}: transform: standardize)", name, deviation));
    }
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
