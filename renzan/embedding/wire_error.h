#pragma once

// What the wire codec takes from the gradients of pooled rows, beside the noise that they have
// anyway because a batch is a sample of the data.

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

// Adds up what one column block's gradients, one sample after another, contribute.
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
