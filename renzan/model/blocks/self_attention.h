#pragma once

// Multi-head self-attention over vectors of one dimension, as AutoInt's interacting layer: Song et
// al., "AutoInt: Automatic Feature Interaction Learning via Self-Attentive Neural Networks", CIKM
// 2019. Each head h gives each vector i
//   Σ_j softmax_j(scale · <query_h x_i, key_h x_j>) value_h x_j.
// What the heads give is put side by side, the residual is added, and ReLU is last, where
//   residual_i = x_i if its dimension is already heads · dim, and otherwise residual · x_i.
// Takes any number of vectors of one dimension, gives as many of heads · dim, with their names. Of
// a sequence it gives a sequence: i and j run over the positions that a sample uses.
//
// Parameters, without biases: "<name>.query.weight", "<name>.key.weight", "<name>.value.weight"
// and, if the residual is projected, "<name>.residual.weight", each [heads · dim, input's
// dimension], one head after the other.

#include <cstdint>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct SelfAttention {
  int64_t heads = 1;
  int64_t dim = 0;       // of what each head gives; 0: the input's / heads
  bool residual = true;  // otherwise it is left out
  bool scale = true;     // by 1 / √dim; otherwise 1
  bool causal = false;   // a vector attends only to those before it and itself
  bool relu = true;

  static constexpr const char* kType = "self_attention";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
