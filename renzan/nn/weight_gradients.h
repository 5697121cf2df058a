#pragma once

// Receives what a backward pass knows about the gradients of parameters, for one virtual worker: of
// each parameter once, as a whole or as vectors that are parts of it.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"
#include "renzan/nn/parameters.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class WeightGradients {
 public:
  virtual ~WeightGradients() = default;

  // For the layer y = x · Wᵀ + b, given dy [rows, out] and x [rows, in] of the same precision: W's
  // gradient is dyᵀ · x, and b's the sums of dy's columns. `weight` [out, in] and `bias` [out] are
  // offsets into the flat parameters. Each sample has at most as many rows as the weight's
  // Parameter says.
  virtual void Add(const BlockedMatrix& dy, const BlockedMatrix& x, int64_t weight,
                   std::optional<int64_t> bias) = 0;

  // The gradient of the vector [m] at this offset is the sum of the rows of d [rows, m].
  virtual void AddVector(const BlockedMatrix& d, int64_t vector) = 0;

  // What the virtual worker's samples give for the running statistic at this place: a vector of n
  // values.
  void SetStatistic(const float* values, int64_t n, const StatisticPlace& place) {
    if (statistics_ != nullptr) std::copy_n(values, n, statistics_ + place.observed);
  }
  // Where these go: [layout.statistics_size()]. Without it, they are dropped.
  void set_statistics(float* statistics) { statistics_ = statistics; }

 private:
  float* statistics_ = nullptr;
};

// Computes them immediately, into a flat array.
class FlatGradients final : public WeightGradients {
 public:
  explicit FlatGradients(float* gradients) : gradients_(gradients) {}
  void Add(const BlockedMatrix& dy, const BlockedMatrix& x, int64_t weight,
           std::optional<int64_t> bias) override {
    TransposedGemm(dy, x, bias ? gradients_ + *bias : nullptr, gradients_ + weight);
  }
  void AddVector(const BlockedMatrix& d, int64_t vector) override {
    ColumnSums(d, gradients_ + vector);
  }

 private:
  float* gradients_;
};

}  // namespace renzan
