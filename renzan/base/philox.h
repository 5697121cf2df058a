#pragma once

// Philox4x32-10, a counter-based random generator (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). A value is a pure function of (key, counter): nothing has state, so any
// thread on any worker can draw any value.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace renzan {

struct Philox {
  using Block = std::array<uint32_t, 4>;

  // The same word of n counters in each array, so that compilers vectorize loops over them.
  template <size_t n>
  using Blocks = std::array<std::array<uint32_t, n>, 4>;

  // Turns 128-bit counters into four independent 32-bit words each, for a 64-bit key.
  template <size_t n>
  [[gnu::always_inline]] static constexpr void DrawInPlace(uint64_t key, Blocks<n>* blocks) {
    Blocks<n>& c = *blocks;
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (size_t i = 0; i < n; ++i) {
        const uint64_t p0 = uint64_t{0xD2511F53} * c[0][i];
        const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2][i];
        c[0][i] = static_cast<uint32_t>(p1 >> 32) ^ c[1][i] ^ k0;
        c[2][i] = static_cast<uint32_t>(p0 >> 32) ^ c[3][i] ^ k1;
        c[1][i] = static_cast<uint32_t>(p1);
        c[3][i] = static_cast<uint32_t>(p0);
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
  }

  static constexpr Block Draw(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
    Blocks<1> c = {{{static_cast<uint32_t>(counter_low)},
                    {static_cast<uint32_t>(counter_low >> 32)},
                    {static_cast<uint32_t>(counter_high)},
                    {static_cast<uint32_t>(counter_high >> 32)}}};
    DrawInPlace(key, &c);
    return {c[0][0], c[1][0], c[2][0], c[3][0]};
  }

  // Uniform in [0, 1) with 24 bits.
  static constexpr float Uniform(uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1.0p-24f;
  }

  // Standard normal from two words (Box-Muller).
  static double Normal(uint32_t a, uint32_t b) {
    const double u = (static_cast<double>(a) + 0.5) * 0x1.0p-32;
    const double v = (static_cast<double>(b) + 0.5) * 0x1.0p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }
};

// Derives the key for one purpose (such as "init/table/C1") from a seed. Stable across versions.
uint64_t PhiloxKey(uint64_t seed, const char* meaning, uint64_t index = 0);

}  // namespace renzan
