#pragma once

// DCNv2's low-rank cross network: x_{l+1} = x_0 ⊙ (W_l (V_l x_l) + b_l) + x_l, with V_l [rank,
// width] and W_l [width, rank]. Wang et al., "DCN V2: Improved Deep & Cross Network", WWW 2021.
// Like Mlp it only holds sizes and offsets: thread-safe.

#include <cstdint>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/nn/parameters.h"

namespace renzan {

class LowRankCross {
 public:
  // Registers "cross.<l>.v", "cross.<l>.w" and "cross.<l>.bias".
  LowRankCross(int64_t width, int64_t rank, int num_layers, ParameterLayout* layout);

  struct Workspace {
    std::vector<AlignedBuffer> inputs;     // x_l of layers 1.., [n, width]
    std::vector<AlignedBuffer> projected;  // V_l x_l, [n, rank]
    std::vector<AlignedBuffer> crossed;    // W_l (V_l x_l) + b_l, [n, width]
    AlignedBuffer d_x, d_crossed;          // [n, width]
    AlignedBuffer d_projected;             // [n, rank]
  };
  Workspace MakeWorkspace(int64_t n) const;

  // x0 [n, width] -> y [n, width]
  void Forward(const float* parameters, int64_t n, const float* x0, float* y,
               Workspace* workspace) const;

  // dy [n, width] (destroyed) -> gradients (written) and d_x0 [n, width] (written).
  void Backward(const float* parameters, int64_t n, const float* x0, float* dy, float* gradients,
                float* d_x0, Workspace* workspace) const;

 private:
  struct Layer {
    int64_t v, w, bias;
  };
  int64_t width_, rank_;
  std::vector<Layer> layers_;
};

}  // namespace renzan
