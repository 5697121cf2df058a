#pragma once

// DLRM's dot interaction: the products of all pairs of a sample's feature vectors. Naumov et al.,
// "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019.
// Thread-safe, no allocation except small scratch buffers per thread.
//
// Sums run in float32 over ascending indices, whatever the precision of the matrices. Exception:
// for bfloat16 in the class "amx" (nn/isa.h) they run in the order of its products (nn/gemm.h).

#include <cstdint>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// The width of the output row: dim + f(f-1)/2 for f feature vectors of `dim` columns.
inline int64_t DotInteractionWidth(int64_t f, int64_t dim) { return dim + f * (f - 1) / 2; }

// features [n, f·dim] -> out [n, DotInteractionWidth]: a copy of vector 0 (the bottom MLP's
// output), then <x_i, x_j> for i = 1.. and j = 0..i-1, row by row of the lower triangle.
void DotInteractionForward(const BlockedMatrix& features, int64_t f, int64_t dim,
                           BlockedMatrix* out);

// d_out [n, width] -> d_features [n, f·dim] (written, not added to).
void DotInteractionBackward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f,
                            int64_t dim, BlockedMatrix* d_features);

}  // namespace renzan
