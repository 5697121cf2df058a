#pragma once

// The heads of self-attention for one sample, in float32: what is between its projections
// (self_attention.h). Every sum has a fixed order.

#include <cstdint>

namespace renzan {

// Where one sample's values are.
struct AttentionValues {
  float *query, *key, *value;  // in: [vectors, heads · dim], as all that follow but the last two
  float* output;               // Forward: out; Backward: in, its gradient
  float *d_query, *d_key, *d_value;  // Backward: out
  float* weights;                    // [heads, vectors, vectors]; Forward: out; Backward: in
  float* scratch;                    // [scratch()]
};

struct AttentionHeads {
  int64_t vectors, heads, dim;
  float scale;  // of the scores
  bool causal;

  int64_t width() const { return heads * dim; }
  int64_t columns() const { return vectors * width(); }
  int64_t weights() const { return heads * vectors * vectors; }
  int64_t scratch() const { return columns() + vectors; }

  void Forward(const AttentionValues& at) const;
  void Backward(const AttentionValues& at) const;

 private:
  int64_t SeenBy(int64_t vector) const { return causal ? vector + 1 : vectors; }
  // [width, vectors]: then a vector is multiplied by all others at once.
  void Transpose(const float* vectors_of, float* to) const;
  // products[j] = <vector, matrix_j> for j below `seen`, where `transposed` has the matrix's rows j
  // as columns.
  void Products(const float* vector, const float* transposed, int64_t seen, float* products) const;
};

}  // namespace renzan
