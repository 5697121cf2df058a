#pragma once

// A layer of the hierarchical sequential transduction unit: Zhai et al., "Actions Speak Louder than
// Words: Trillion-Parameter Sequential Transducers for Generative Recommendations", ICML 2024. For
// the vectors x_i of a sequence,
//   [U, V, Q, K] = SiLU(W x),
//   A_ij = SiLU(<q_i, k_j> + b_{i−j}) / n for j up to i, in each head,
//   y_i = W' (norm(Σ_j A_ij v_j) ⊙ u_i) + b' + x_i,
// where norm normalizes all heads' columns at once, without learned factors (epsilon 1e-6), and n
// is the number of positions that samples may use, as in the authors' code, not that one does. b is
// learned for each distance of positions and shared by the heads, or absent; there is no bias for
// distances in time. The input is not normalized: put a `layer_norm` before it where layers follow
// each other. Takes a sequence, or other vectors of one dimension, gives the same.
//
// Parameters: "<name>.projection.weight" [4 · heads · dim, input's dimension], of U, V, Q and K in
// this order; "<name>.distance" [positions], of the distances 0, 1, ..., if `positions` is
// `relative`; "<name>.output.weight" [input's dimension, heads · dim] and "<name>.output.bias".

#include <cstdint>
#include <string>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Hstu {
  int64_t heads = 1;
  int64_t dim = 0;                     // of each head's U, V, Q and K; 0: the input's / heads
  std::string positions = "relative";  // or none: b is 0

  static constexpr const char* kType = "hstu";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
