#pragma once

// The decimal text of an integer, as std::to_chars writes it, but with hardly a branch: where
// lengths vary at random, a mispredicted one takes longer than all digits.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace renzan {

inline constexpr size_t kMaxDecimalDigits = 24;

namespace internal {

// The eight digits of a number below 10^8, each in a byte, the first in the lowest one. Divides
// several numbers in one word, by multiplication and shifts (P. Khuong, "How to print integers
// really fast").
[[gnu::always_inline]] inline uint64_t EightDigits(uint64_t number) {
  const uint64_t high = number / 10'000, low = number % 10'000;
  const uint64_t halves = high | low << 32;
  const uint64_t hundreds = (halves * 10'486 >> 20) & 0x7F'0000007F;
  const uint64_t pairs = ((halves - 100 * hundreds) << 16) + hundreds;
  const uint64_t tens = (pairs * 103 >> 10) & 0x000F'000F'000F'000F;
  return tens + ((pairs - 10 * tens) << 8);
}

inline void PutEightDigits(uint64_t digits, char* out) {
  const uint64_t text = digits + 0x3030303030303030;
  std::memcpy(out, &text, sizeof text);
}

}  // namespace internal

// `buffer`: [kMaxDecimalDigits], which holds the text.
[[gnu::always_inline]] inline std::string_view DecimalDigits(uint64_t number, bool negative,
                                                             char* buffer) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kEight = 100'000'000;
  char* const end = buffer + kMaxDecimalDigits;
  uint64_t digits = 0;
  char* first = end - 8;
  if (number < kEight) {
    digits = internal::EightDigits(number);
  } else {
    internal::PutEightDigits(internal::EightDigits(number % kEight), end - 8);
    number /= kEight;
    first = end - 16;
    if (number >= kEight) [[unlikely]] {
      internal::PutEightDigits(internal::EightDigits(number % kEight), end - 16);
      number /= kEight;
      first = end - 24;
    }
    digits = internal::EightDigits(number);
  }
  internal::PutEightDigits(digits, first);
  // All zeros: the last one is the text.
  first += digits == 0 ? 7 : std::countr_zero(digits) / 8;
  if (negative) *--first = '-';
  return {first, static_cast<size_t>(end - first)};
}

template <typename Integer>
[[gnu::always_inline]] inline std::string_view DecimalDigits(Integer number, char* buffer) {
  const bool negative = number < 0;
  const uint64_t bits = static_cast<uint64_t>(number);
  return DecimalDigits(negative ? 0 - bits : bits, negative, buffer);
}

}  // namespace renzan
