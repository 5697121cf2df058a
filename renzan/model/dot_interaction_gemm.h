#pragma once

// The dot interaction's products of bfloat16 in the class "amx" for any shape, one sample at a
// time. dot_interaction_tiles.h computes the same bits faster for the shapes that models have.

#include <cstdint>

#include "renzan/base/blocked_matrix.h"
#include "renzan/model/dot_interaction_scratch.h"

namespace renzan {

// The products of all pairs of sample `s`'s vectors -> scratch.products, in the order of
// nn/gemm.h's class "amx".
void ProductsByGemm(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                    const Scratch& scratch);

// scratch.dx = d_products · the sample's vectors, likewise. d_products [f, f], whose rows are
// f_stride apart, are rounded to bfloat16.
void GradientsByGemm(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                     const float* d_products, const Scratch& scratch);

}  // namespace renzan
