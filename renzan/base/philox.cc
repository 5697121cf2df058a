#include "renzan/base/philox.h"

#include <xxhash.h>

#include <cstring>

namespace renzan {

uint64_t PhiloxKey(uint64_t seed, const char* meaning, uint64_t index) {
  const uint64_t name = XXH64(meaning, std::strlen(meaning), 0);
  const Philox::Block block = Philox::Draw(seed, name, index);
  return (uint64_t{block[0]} << 32) | block[1];
}

}  // namespace renzan
