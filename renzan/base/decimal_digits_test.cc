#include "renzan/base/decimal_digits.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace renzan {
namespace {

template <typename Integer>
void ExpectDigits(Integer number) {
  char buffer[kMaxDecimalDigits];
  EXPECT_EQ(DecimalDigits(number, buffer), std::to_string(number));
}

TEST(DecimalDigits, AreThoseOfToString) {
  for (int number = -20'000; number <= 20'000; ++number) ExpectDigits(number);
  for (uint64_t power = 1; power < std::numeric_limits<uint64_t>::max() / 10; power *= 10)
    for (const uint64_t digit : {1, 5, 9}) {
      for (const uint64_t number : {digit * power - 1, digit * power, digit * power + 1})
        ExpectDigits(number);
      ExpectDigits(-static_cast<int64_t>(digit * (power / 10) + 7));
    }
  uint64_t number = 1;
  for (int i = 0; i < 100'000; ++i) {
    number = number * 6364136223846793005 + 1442695040888963407;
    ExpectDigits(number);
    ExpectDigits(static_cast<int64_t>(number));
    ExpectDigits(number >> (number % 61));
  }
  ExpectDigits(std::numeric_limits<int64_t>::min());
  ExpectDigits(std::numeric_limits<int8_t>::min());
  ExpectDigits(std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace renzan
