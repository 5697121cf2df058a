#pragma once

// Optimizers over the flat dense parameters: element by element, so any split of the work gives the
// same bits. Products and sums are rounded separately (never fused).
//
//   sgd      w -= lr·g
//   adagrad  s += g²;  w -= lr·g / (√s + ε)                              (Duchi et al., 2011)
//   adam     m = β₁m + (1-β₁)g;  v = β₂v + (1-β₂)g²;
//            w -= lr·m̂ / (√v̂ + ε), m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ), t the step from 1
//                                                                        (Kingma & Ba, 2015)

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/thread_pool.h"

namespace renzan {

struct DenseOptimizerOptions {
  std::string type = "sgd";  // sgd, adagrad, adam
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999;
  double initial_accumulator = 0;  // adagrad's s before the first step
};

class DenseOptimizer {
 public:
  DenseOptimizer(const DenseOptimizerOptions& options, size_t size);

  // One step over all parameters. `step` counts from 0.
  void Apply(ThreadPool& pool, double learning_rate, int64_t step, std::span<const float> gradient,
             std::span<float> parameters);

  // The states to save, each as long as the parameters: "adagrad", or "adam_m" and "adam_v".
  struct State {
    std::string name;
    AlignedBuffer values;
  };
  std::vector<State>& states() { return states_; }

 private:
  DenseOptimizerOptions options_;
  std::vector<State> states_;
};

}  // namespace renzan
