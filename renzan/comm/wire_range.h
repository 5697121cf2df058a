#pragma once

// How many values an fp16 wire changed by more than rounding. The other types have float32's range.
// Counts are exact, so their sum does not depend on placement.

#include <cstdint>
#include <span>

namespace renzan {

struct WireRange {
  int64_t values = 0;
  int64_t overflowed = 0;   // finite, but beyond the largest value: clamped to it (float_codec.h)
  int64_t underflowed = 0;  // not zero, but received as zero

  void Add(const WireRange& other);
};

// Counts for values sent as float16. Thread-safe.
WireRange Float16Range(std::span<const float> values);

}  // namespace renzan
