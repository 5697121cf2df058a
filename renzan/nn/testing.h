#pragma once

// Finite differences for tests.

#include <algorithm>
#include <cmath>
#include <functional>
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

// The largest error of `gradient` against central differences of `loss` over `at`, relative to the
// gradient's largest element. `loss` reads `at`.
inline double GradientError(std::span<float> at, std::span<const float> gradient,
                            const std::function<double()>& loss, float h = 1e-2f) {
  double largest = 1e-12, error = 0;
  for (float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
  for (size_t i = 0; i < at.size(); ++i) {
    const float saved = at[i];
    at[i] = saved + h;
    const double up = loss();
    at[i] = saved - h;
    const double down = loss();
    at[i] = saved;
    const double expected = (up - down) / (2.0 * static_cast<double>(h));
    error = std::max(error, std::abs(expected - static_cast<double>(gradient[i])));
  }
  return error / largest;
}

}  // namespace renzan
