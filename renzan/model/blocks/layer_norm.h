#pragma once

// Layer normalization: y = gamma ⊙ (x − mean) / √(variance + epsilon) + beta, for each sample over
// all columns, or over each vector by itself as torch.nn.LayerNorm(dim) does with [n, vectors,
// dim]: then all vectors have one dimension and share gamma and beta. Ba et al., "Layer
// Normalization", 2016. Takes any vectors, gives the same ones; of a sequence
// with `per_vector`, a sequence.
//
// Parameters: "<name>.gamma" and "<name>.beta", one value for each column that is normalized.

#include <cstdint>
#include <memory>
#include <string>

#include "renzan/model/blocks/block.h"
#include "renzan/model/blocks/normalization.h"
#include "renzan/model/normalize_rows.h"

namespace renzan {

struct LayerNorm {
  bool per_vector = false;
  double epsilon = 1e-5;

  static constexpr const char* kType = "layer_norm";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

class LayerNormalization final : public Normalization {
 public:
  // Of rows of `columns`, each `width` of which are normalized at once. A sample has one or, at
  // most, `rows_per_sample`.
  LayerNormalization(const LayerNorm& options, const BlockPlace& place, const std::string& prefix,
                     int64_t width, int64_t columns, int64_t rows_per_sample = 1);

  void Forward(const BlockPass& pass, const BlockedMatrix& x, BlockedMatrix* y) const override;
  void Backward(const BlockPass& pass, const BlockedMatrix& x, const BlockedMatrix& dy,
                WeightGradients* gradients, BlockedMatrix* dx) const override;

 private:
  RowNormalization OptionsOf(const BlockPass& pass) const;

  float epsilon_;
  int64_t width_, columns_;
  int64_t gamma_, beta_;     // offsets of the parameters
  size_t d_gamma_, d_beta_;  // buffers of each sample's part
  size_t row_;               // scratch memory
};

}  // namespace renzan
