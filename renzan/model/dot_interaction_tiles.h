#pragma once

// The dot interaction of bfloat16 in the registers for tiles of Intel's AMX, or in an emulation of
// them that computes the same bits: whole matrices, for the shapes that models have. A sample is a
// few dozen instructions for tiles, so what counts is how its operands get into their layout.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// Whether f vectors are at most two tiles high, and each one is whole lines or half of one.
inline bool FitsTiles(int64_t f, int64_t dim) { return f <= 32 && (dim % 32 == 0 || dim == 16); }

// DotInteractionForward() and DotInteractionBackward() (dot_interaction.h) for such shapes and
// matrices of bfloat16, in the order of nn/gemm.h's class "amx".
void DotInteractionForwardInTiles(const BlockedMatrix& features, int64_t f, int64_t dim,
                                  BlockedMatrix* out);
void DotInteractionBackwardInTiles(const BlockedMatrix& features, const BlockedMatrix& d_out,
                                   int64_t f, int64_t dim, BlockedMatrix* d_features);

}  // namespace renzan
