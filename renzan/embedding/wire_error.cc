#include "renzan/embedding/wire_error.h"

#include <algorithm>

namespace renzan {
namespace {

// The squares of float32 values are exact in float64.
double SumOfSquares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

}  // namespace

void WireError::Add(const WireError& other) {
  lost += other.lost;
  noise += other.noise;
}

void WireErrorMeter::AddGradient(std::span<const float> gradient) {
  ++samples_;
  for (size_t c = 0; c < sums_.size(); ++c) sums_[c] += static_cast<double>(gradient[c]);
  squares_ += SumOfSquares(gradient);
}

void WireErrorMeter::AddLost(std::span<const float> difference) {
  lost_ += SumOfSquares(difference);
}

WireError WireErrorMeter::Result() const {
  if (samples_ == 0) return {};
  double of_mean = 0;
  for (const double sum : sums_) of_mean += sum * sum / static_cast<double>(samples_);
  return {.lost = lost_, .noise = std::max(0.0, squares_ - of_mean)};
}

}  // namespace renzan
