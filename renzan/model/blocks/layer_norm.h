#pragma once

// Layer normalization: y = gamma ⊙ (x − mean) / √(variance + epsilon) + beta, for each sample over
// all columns, or over each vector by itself as torch.nn.LayerNorm(dim) does with [n, vectors,
// dim]: then all vectors have one dimension and share gamma and beta. Ba et al., "Layer
// Normalization", 2016. Takes any vectors, gives the same ones.
//
// Parameters: "<name>.gamma" and "<name>.beta", one value for each column that is normalized.

#include "renzan/model/blocks/block.h"

namespace renzan {

struct LayerNorm {
  bool per_vector = false;
  double epsilon = 1e-5;

  static constexpr const char* kType = "layer_norm";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
