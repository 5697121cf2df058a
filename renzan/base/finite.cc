#include "renzan/base/finite.h"

#include <cstdint>
#include <cstring>

namespace renzan {

bool AllFinite(std::span<const float> values) {
  // Adding one to an exponent of all ones carries into the sign bit. Integer code vectorises on
  // every instruction set and does not depend on floating-point modes.
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
