#pragma once

// The running statistics among a model's dense parameters (ParameterLayout::AddStatistic). A step
// computes them from the values before it, because optimizers and their weight decay run over the
// whole flat array: what they do to a statistic is overwritten.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/nn/parameters.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

class RunningStatistics {
 public:
  RunningStatistics(const ParameterLayout& layout, int num_virtual_workers);

  // Before the optimizer's step. `sums`: see DenseGradients::statistics().
  void Compute(std::span<const float> sums, std::span<const float> parameters);
  // After it.
  void Write(std::span<float> parameters) const;

 private:
  std::vector<Parameter> statistics_;
  double virtual_workers_;
  AlignedBuffer next_;
};

}  // namespace renzan
