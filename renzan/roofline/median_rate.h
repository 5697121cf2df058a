#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/roofline/median.h"

namespace renzan {

// The intervals of one measurement: the speed of shared machines changes from moment to moment.
inline constexpr int kIntervals = 15;

// The median rate per second of `work`, which returns the amount that it did. Each call is one
// interval; the first only warms up.
inline double MedianRate(const std::function<double()>& work) {
  std::vector<double> rates;
  for (int i = -1; i < kIntervals; ++i) {
    const double start = SystemClock().MonotonicSeconds();
    const double amount = work();
    const double seconds = SystemClock().MonotonicSeconds() - start;
    if (i >= 0) rates.push_back(amount / seconds);
  }
  return Median(std::move(rates));
}

}  // namespace renzan
