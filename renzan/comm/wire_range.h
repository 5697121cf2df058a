#pragma once

// How many values an fp16 wire has lost, beyond rounding. The other types have float32's range.
// Counts are exact, so they add up to the same on any placement.

#include <cstdint>
#include <span>

namespace renzan {

struct WireRange {
  int64_t values = 0;
  int64_t overflowed = 0;   // finite, and beyond the largest: clamped to it (codec.h)
  int64_t underflowed = 0;  // not zero, and zero on the other side

  void Add(const WireRange& other);
};

// Of values that travel as float16. Thread-safe.
WireRange Float16Range(std::span<const float> values);

}  // namespace renzan
