#pragma once

// Random values for tests.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {

// The first and last seed of a property test, inclusive: 0 to `default_last`, unless the
// environment has RENZAN_TEST_SEEDS=FIRST..LAST or one seed.
inline std::pair<uint64_t, uint64_t> TestSeeds(uint64_t default_last) {
  const char* text = std::getenv("RENZAN_TEST_SEEDS");
  if (text == nullptr) return {0, default_last};
  const std::string range = text;
  const size_t dots = range.find("..");
  const uint64_t first = std::stoull(range);
  return {first, dots == std::string::npos ? first : std::stoull(range.substr(dots + 2))};
}

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
