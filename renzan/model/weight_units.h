#pragma once

// Weights of samples as integers, so that their sums do not depend on the order of the samples: in
// units of 2^-32 of the power of two that is not below the largest one.

#include <cmath>
#include <cstdint>

#include "renzan/base/error.h"

namespace renzan {

class WeightUnits {
 public:
  // `max_weight`: at least every weight; not negative.
  explicit WeightUnits(double max_weight) {
    CHECK(max_weight >= 0 && std::isfinite(max_weight));
    int exponent = 0;
    std::frexp(max_weight, &exponent);  // max_weight <= 2^exponent
    exponent_ = exponent - kBits;
  }

  // At most 2^32.
  int64_t Of(float weight) const {
    const double units = std::ldexp(double{weight}, -exponent_);
    CHECK(units >= 0 && units <= 0x1.0p32);
    return static_cast<int64_t>(units + 0.5);
  }
  // The weight that `units` stand for.
  double Value(double units) const { return std::ldexp(units, exponent_); }

 private:
  static constexpr int kBits = 32;
  int exponent_ = 0;
};

}  // namespace renzan
