#pragma once

// Counts how often a value was in which range, as Prometheus does. Not thread-safe.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace renzan::cluster::kubernetes {

class Histogram {
 public:
  // `bounds` ascend; the last range, above all of them, has none.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void Observe(double value) {
    ++counts_[std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin()];
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  // For each bound, the values up to it and above the one before; then those above all bounds.
  const std::vector<int64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

}  // namespace renzan::cluster::kubernetes
