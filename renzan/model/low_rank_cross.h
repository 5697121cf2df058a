#pragma once

// DCNv2's low-rank cross network: x_{l+1} = x_0 ⊙ (W_l (V_l x_l) + b_l) + x_l, with V_l [rank,
// width] and W_l [width, rank]. Wang et al., "DCN V2: Improved Deep & Cross Network", WWW 2021.
// Like Mlp it only holds sizes and offsets: thread-safe.

#include <cstdint>
#include <vector>

#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class LowRankCross {
 public:
  // Registers "cross.<l>.v", "cross.<l>.w" and "cross.<l>.bias".
  LowRankCross(int64_t width, int64_t rank, int num_layers, ParameterLayout* layout);

  struct Workspace {
    std::vector<BlockedMatrix> outputs;    // x_{l+1}, [n, width]
    std::vector<BlockedMatrix> projected;  // V_l x_l, [n, rank]
    std::vector<BlockedMatrix> crossed;    // W_l (V_l x_l) + b_l, [n, width]
    BlockedMatrix d_crossed;               // [n, width]
    BlockedMatrix d_projected;             // [n, rank]
  };
  Workspace MakeWorkspace(int64_t n, Precision precision) const;

  // x0 [n, width] -> the last layer's output [n, width], in the workspace; without layers, x0.
  const BlockedMatrix& Forward(const PackedParameters& parameters, const BlockedMatrix& x0,
                               Workspace* workspace) const;

  // dy [n, width] (destroyed) -> gradients (written) and d_x0 [n, width] (written).
  void Backward(const PackedParameters& parameters, const BlockedMatrix& x0, BlockedMatrix* dy,
                WeightGradients* gradients, BlockedMatrix* d_x0, Workspace* workspace) const;

 private:
  struct Layer {
    int64_t v, w, bias;
  };
  int64_t width_, rank_;
  std::vector<Layer> layers_;
};

}  // namespace renzan
