#pragma once

// Receives what a backward pass knows about the gradients of a layer's weight and bias, for one
// virtual worker.

#include <cstdint>
#include <optional>

#include "renzan/nn/gemm.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class WeightGradients {
 public:
  virtual ~WeightGradients() = default;

  // For the layer y = x · Wᵀ + b, given dy [n, out] and x [n, in] of the same precision: W's
  // gradient is dyᵀ · x, and b's the sums of dy's columns. `weight` [out, in] and `bias` [out] are
  // offsets into the flat parameters.
  virtual void Add(const BlockedMatrix& dy, const BlockedMatrix& x, int64_t weight,
                   std::optional<int64_t> bias) = 0;
};

// Computes them immediately, into a flat array.
class FlatGradients final : public WeightGradients {
 public:
  explicit FlatGradients(float* gradients) : gradients_(gradients) {}
  void Add(const BlockedMatrix& dy, const BlockedMatrix& x, int64_t weight,
           std::optional<int64_t> bias) override {
    TransposedGemm(dy, x, bias ? gradients_ + *bias : nullptr, gradients_ + weight);
  }

 private:
  float* gradients_;
};

}  // namespace renzan
