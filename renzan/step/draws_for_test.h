#pragma once

// Choices that depend on a seed alone.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  int Below(int n) {
    return static_cast<int>(Philox::Draw(seed_, draws_++)[0] % static_cast<uint32_t>(n));
  }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename T>
  T Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int>(choices.size())))];
  }
  // From 1 to `most`; small sizes are as likely as large ones.
  int Size(int most) {
    int size = 1;
    while (2 * size <= most && !OneIn(4)) size *= 2;
    return std::min(most, size + Below(size));
  }

 private:
  uint64_t seed_, draws_ = 0;
};

}  // namespace renzan
