#pragma once

// Quality of predictions of numbers, as sums that do not depend on the order of the samples or on
// how they are split among threads and workers. Plain data.

#include <cstddef>
#include <cstdint>
#include <span>

namespace renzan {

// A sum of numbers, each rounded to a multiple of 2^-52, that is exact otherwise: the sum of their
// whole parts (rounded down), and that of the rest in units of 2^-52.
struct ExactSum {
  __int128 whole = 0, fraction = 0;

  // `value`: at most 2^62 in absolute terms. `times`: an integer weight, at most 2^32.
  void Add(double value, int64_t times = 1);
  void Merge(const ExactSum& other) {
    whole += other.whole;
    fraction += other.fraction;
  }
  double Value() const;

  bool operator==(const ExactSum&) const = default;
};

struct ErrorSums {
  ExactSum squared_error, absolute_error;  // of prediction - label
  ExactSum prediction, label;

  // Both finite. An error beyond 2^31 counts as 2^31, a prediction beyond 2^40 as 2^40.
  void Add(float predicted, float labelled, int64_t times = 1);
  void Merge(const ErrorSums& other);
  bool empty() const { return *this == ErrorSums(); }

  // As kNumIntegers integers: the lower and the upper 64 bits of each whole sum and each fraction.
  static constexpr size_t kNumIntegers = 4 * 2 * 2;
  void ToIntegers(std::span<int64_t> integers) const;
  static ErrorSums FromIntegers(std::span<const int64_t> integers);

  bool operator==(const ErrorSums&) const = default;
};

}  // namespace renzan
