#pragma once

// Finite differences for tests.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace renzan {

// Derivatives of `loss`, which reads `at`, by fourth-order differences:
// f' = (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h.
inline std::vector<double> FiniteDifferences(std::span<float> at,
                                             const std::function<double()>& loss, float h) {
  std::vector<double> derivatives;
  for (float& value : at) {
    const float saved = value;
    const auto loss_at = [&](float x) {
      value = x;
      return loss();
    };
    const double near = loss_at(saved + h) - loss_at(saved - h);
    const double far = loss_at(saved + 2 * h) - loss_at(saved - 2 * h);
    value = saved;
    derivatives.push_back((8 * near - far) / (12.0 * static_cast<double>(h)));
  }
  return derivatives;
}

// The largest error of an element of `gradient` against finite differences of `loss`, which reads
// `at`, relative to the element's size plus a hundredth of the largest one's. Infinity if the whole
// gradient is within rounding error: then the test would be meaningless.
//
// Each element is compared with differences over several steps, and the best counts: those over
// small steps are mostly rounding, since the loss is computed in float32, and those over large
// steps are wrong where a ReLU switches. A wrong gradient agrees with none of them.
inline double GradientError(std::span<float> at, std::span<const float> gradient,
                            const std::function<double()>& loss) {
  constexpr float kSteps[] = {1e-3f, 4e-3f, 1.6e-2f, 6.4e-2f};
  std::vector<std::vector<double>> estimates;
  for (const float h : kSteps) estimates.push_back(FiniteDifferences(at, loss, h));
  double largest = 0;
  for (const double derivative : estimates.back())
    largest = std::max(largest, std::abs(derivative));
  const double rounding = std::abs(loss()) * 0x1p-24 / static_cast<double>(kSteps[3]);
  if (largest < 100 * rounding) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& estimate : estimates)
      best = std::min(best, std::abs(estimate[i] - static_cast<double>(gradient[i])) /
                                (std::abs(estimate[i]) + largest / 100));
    worst = std::max(worst, best);
  }
  return worst;
}

}  // namespace renzan
