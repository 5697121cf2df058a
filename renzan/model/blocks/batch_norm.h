#pragma once

// Batch normalization: y = gamma ⊙ (x − mean) / √(variance + epsilon) + beta, for each column over
// samples. Ioffe and Szegedy, "Batch Normalization", 2015. Takes any vectors, gives the same ones.
//
// In training, the statistics are those of one virtual worker's samples, so that no worker waits
// for another within a forward pass. Elsewhere they are the running ones, which follow the mean
// over the virtual workers: running = (1 − momentum) · running + momentum · mean, once per step,
// with the unbiased variance as in PyTorch.
//
// Parameters: "<name>.gamma" and "<name>.beta", "<name>.running_mean" and "<name>.running_var", one
// value for each column.

#include <cstdint>
#include <memory>
#include <string>

#include "renzan/model/blocks/block.h"
#include "renzan/model/blocks/normalization.h"
#include "renzan/nn/normalize_columns.h"

namespace renzan {

struct BatchNorm {
  double epsilon = 1e-5, momentum = 0.1;  // PyTorch's
  bool affine = true;                     // has gamma and beta

  static constexpr const char* kType = "batch_norm";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

class BatchNormalization final : public Normalization {
 public:
  BatchNormalization(const BatchNorm& options, const BlockPlace& place, const std::string& prefix,
                     int64_t columns);

  void Forward(const BlockPass& pass, const BlockedMatrix& x, BlockedMatrix* y) const override;
  void Backward(const BlockPass& pass, const BlockedMatrix& x, const BlockedMatrix& dy,
                WeightGradients* gradients, BlockedMatrix* dx) const override;

 private:
  // What is kept of each column from a forward to its backward pass.
  struct Columns {
    float *mean, *scale, *variance;  // scale: 1 / √(variance + epsilon); variance: unbiased
    float *d_gamma, *d_beta;
  };
  Columns ColumnsOfPass(const BlockPass& pass) const;
  void Observe(const BlockPass& pass, const BlockedMatrix& x, const Columns& columns) const;
  ColumnScales ScalesOf(const BlockPass& pass, const Columns& columns) const;

  BatchNorm options_;
  int64_t columns_;
  int64_t gamma_ = 0, beta_ = 0;  // offsets of the parameters, if it is affine
  StatisticPlace mean_, variance_;
  size_t gradients_ = 0;  // buffer: a row of gradients
  size_t row_, moments_;  // rows: Columns, and float64 moments of training
};

}  // namespace renzan
