#pragma once

// Finite differences for tests.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {

inline std::vector<float> RandomValues(size_t n, uint64_t seed, float scale = 1.0f) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block block = Philox::Draw(seed, i);
    values[i] = scale * static_cast<float>(Philox::Normal(block[0], block[1]));
  }
  return values;
}

// The largest relative error of an element of `gradient` against finite differences of `loss`,
// which reads `at`. Elements smaller than a hundredth of the largest are compared relative to that
// hundredth, because rounding of the loss dominates them. Infinity if the whole gradient is within
// rounding error: then the test would be meaningless.
//
// Fourth-order differences: f' = (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h.
inline double GradientError(std::span<float> at, std::span<const float> gradient,
                            const std::function<double()>& loss, float h = 1e-2f) {
  std::vector<double> expected(at.size());
  double largest = 0, loss_size = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    const float saved = at[i];
    const auto loss_at = [&](float x) {
      at[i] = x;
      const double value = loss();
      loss_size = std::max(loss_size, std::abs(value));
      return value;
    };
    const double near = loss_at(saved + h) - loss_at(saved - h);
    const double far = loss_at(saved + 2 * h) - loss_at(saved - 2 * h);
    at[i] = saved;
    expected[i] = (8 * near - far) / (12.0 * static_cast<double>(h));
    largest = std::max(largest, std::abs(expected[i]));
  }
  const double rounding = loss_size * 0x1p-24 / static_cast<double>(h);
  if (largest < 100 * rounding) return std::numeric_limits<double>::infinity();
  double error = 0;
  for (size_t i = 0; i < at.size(); ++i)
    error = std::max(error, std::abs(expected[i] - static_cast<double>(gradient[i])) /
                                std::max(std::abs(expected[i]), largest / 100));
  return error;
}

}  // namespace renzan
