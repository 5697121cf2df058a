#pragma once

// The dot interaction of bfloat16 in the tile registers of Intel's AMX, or in an emulation that
// computes the same bits: whole matrices at once, for the shapes that models have. A sample takes
// only a few dozen tile instructions, so what matters is how its operands get into their layout.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// Whether f vectors fit into two tiles' height, and each is whole lines or half a line.
inline bool FitsTiles(int64_t f, int64_t dim) { return f <= 32 && (dim % 32 == 0 || dim == 16); }

// DotInteractionForward() and DotInteractionBackward() (dot_interaction.h) for such shapes and
// matrices of bfloat16, summed in the order of class "amx" (nn/gemm.h).
void DotInteractionForwardInTiles(const BlockedMatrix& features, int64_t f, int64_t dim,
                                  BlockedMatrix* out);
void DotInteractionBackwardInTiles(const BlockedMatrix& features, const BlockedMatrix& d_out,
                                   int64_t f, int64_t dim, BlockedMatrix* d_features);

}  // namespace renzan
