#pragma once

// Random values for tests.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {

// Normally distributed.
inline std::vector<float> RandomValues(size_t n, uint64_t seed, float scale = 1.0f) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block block = Philox::Draw(seed, i);
    values[i] = scale * static_cast<float>(Philox::Normal(block[0], block[1]));
  }
  return values;
}

}  // namespace renzan
