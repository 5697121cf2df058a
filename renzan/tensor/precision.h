#pragma once

// float32 and bfloat16, which is the upper half of a float32.

#include <bit>
#include <cstdint>

namespace renzan {

enum class Precision { kFloat32, kBFloat16 };

// May point into an array of floats.
using BFloat16Bits = uint16_t __attribute__((may_alias));

// Rounded to nearest, ties to even; NaN stays NaN.
inline uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>((nan ? bits | 0x400000 : rounded) >> 16);
}

inline float FromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace renzan
