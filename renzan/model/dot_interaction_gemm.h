#pragma once

// The dot interaction of bfloat16 in the class "amx" for any shape, one sample at a time.
// dot_interaction_tiles.h computes the same bits faster for the shapes that models have.

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// DotInteractionForward() and DotInteractionBackward() (dot_interaction.h), summed in the order of
// class "amx" (nn/gemm.h). The gradients of the products are rounded to bfloat16.
void DotInteractionForwardByGemm(const BlockedMatrix& features, int64_t f, int64_t dim,
                                 BlockedMatrix* out);
void DotInteractionBackwardByGemm(const BlockedMatrix& features, const BlockedMatrix& d_out,
                                  int64_t f, int64_t dim, BlockedMatrix* d_features);

}  // namespace renzan
