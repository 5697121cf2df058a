#include "renzan/comm/wire_range.h"

#include <cstring>

namespace renzan {

void WireRange::Add(const WireRange& other) {
  values += other.values;
  overflowed += other.overflowed;
  underflowed += other.underflowed;
}

WireRange Float16Range(std::span<const float> values) {
  // Magnitudes compare as integers. Half of the smallest subnormal, 2^-25, is a tie with zero,
  // which is even.
  constexpr int32_t kTiesWithZero = 0x33000000, kLargest = 0x477FE000, kInfinity = 0x7F800000;
  int32_t overflowed = 0, underflowed = 0;
  for (const float& value : values) {
    int32_t magnitude;
    std::memcpy(&magnitude, &value, sizeof(magnitude));
    magnitude &= 0x7FFFFFFF;
    overflowed += (magnitude > kLargest) & (magnitude < kInfinity);
    underflowed += (magnitude > 0) & (magnitude <= kTiesWithZero);
  }
  return {static_cast<int64_t>(values.size()), overflowed, underflowed};
}

}  // namespace renzan
