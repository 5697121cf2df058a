#pragma once

// What the wire codec rounds away from the gradients of pooled rows, compared with the noise that
// they have anyway because a batch is only a sample of the data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

// Of one table and one virtual worker: sums over samples and columns.
struct WireError {
  double lost = 0;   // squares of what never arrives
  double noise = 0;  // squares of the differences from the mean gradient of the virtual worker

  void Add(const WireError& other);
};

// Accumulates the gradients of one column block, one sample after another.
class WireErrorMeter {
 public:
  explicit WireErrorMeter(size_t columns) : sums_(columns) {}
  void AddGradient(std::span<const float> gradient);
  void AddLost(std::span<const float> difference);
  WireError Result() const;

 private:
  int64_t samples_ = 0;
  std::vector<double> sums_;  // by column
  double squares_ = 0, lost_ = 0;
};

}  // namespace renzan
