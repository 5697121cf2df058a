#pragma once

// The heads of attention within one sample's vectors, in float32: what is between the projections
// of self_attention.h and hstu.h. Every sum has a fixed order, which the width of the machine's
// vectors does not change. Weights are not kept between the passes: a thread has those of one head
// of one sample, the square of the number of vectors. Thread-safe.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// Where one sample's values are.
struct AttentionValues {
  float *query, *key, *value;        // in: columns() each, as all that follow up to the scratch
  float* output;                     // Forward: out; Backward: in, its gradient
  float *d_query, *d_key, *d_value;  // Backward: out
  float* scratch;                    // [scratch()]
  // Of kSilu, unless null: what is added to the score of vector i for j is bias[lanes() + i − j].
  const float* bias = nullptr;
  float* d_bias = nullptr;  // [vectors], of i − j; Backward adds to it
};

// The vectors of a sample in a matrix: of each next one, the row and the first column.
struct VectorsAt {
  int64_t row, column, row_step, column_step;
};

struct AttentionHeads {
  enum Weights {
    kSoftmax,  // of the scores
    kSilu,     // score σ(score) / vectors
  };
  int64_t vectors, heads, dim;
  float scale;  // of the products of queries and keys
  bool causal;  // a vector sees only those before it and itself
  Weights kind = kSoftmax;

  int64_t width() const { return heads * dim; }
  // Of vectors and of a head's columns, in whole lines of 16.
  int64_t lanes() const { return (vectors + 15) / 16 * 16; }
  int64_t padded_dim() const { return (dim + 15) / 16 * 16; }
  // Between two vectors of AttentionValues, and of all of them.
  int64_t stride() const { return heads * padded_dim(); }
  int64_t columns() const { return lanes() * stride(); }
  int64_t scratch() const { return (padded_dim() + 2 * vectors + 1) * lanes(); }

  // Copies `used` vectors of width() into a part of AttentionValues, and back.
  void Get(const BlockedMatrix& from, const VectorsAt& at, int64_t used, float* to) const;
  void Set(const float* from, int64_t used, const VectorsAt& at, BlockedMatrix* to) const;

  // Of the first `used` vectors, which do not see the others.
  void Forward(const AttentionValues& at, int64_t used) const;
  void Backward(const AttentionValues& at, int64_t used) const;

  // The same of the last of these alone, which sees all: query, output and d_query have one vector.
  void ForwardNewest(const AttentionValues& at, int64_t used) const;
  void BackwardNewest(const AttentionValues& at, int64_t used) const;
};

}  // namespace renzan
