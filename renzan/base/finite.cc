#include "renzan/base/finite.h"

#include <cstdint>
#include <cstring>

namespace renzan {

bool AllFinite(std::span<const float> values) {
  // An exponent of all ones, plus one, carries into the sign bit. Integers vectorise on every
  // instruction set, and no flag of the floating-point unit can reach the answer.
  constexpr uint32_t kMagnitude = 0x7FFFFFFF, kOneExponent = 0x00800000;
  uint32_t carries = 0;
  for (const float& value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    carries |= (bits & kMagnitude) + kOneExponent;
  }
  return carries < 0x80000000;
}

}  // namespace renzan
