#pragma once

// The sum of products of two rows, in an order that compilers can keep in vectors: sum l is over
// the elements l, l + 8, ..., and these eight are added in pairs.

#include <cstdint>

namespace renzan {

inline float ProductOf(const float* a, const float* b, int64_t n) {
  constexpr int64_t kSums = 8;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t l = 0; l < kSums; ++l) sums[l] += a[i + l] * b[i + l];
  for (int64_t l = 0; i < n; ++i, ++l) sums[l] += a[i] * b[i];
  for (int64_t step = kSums / 2; step > 0; step /= 2)
    for (int64_t l = 0; l < step; ++l) sums[l] += sums[l + step];
  return sums[0];
}

}  // namespace renzan
