#pragma once

// Products of bfloat16 in the tile registers of Intel's AMX, or in an emulation that computes the
// same bits. gemm.h, which uses them, has the definition.

#include "renzan/nn/gemm.h"

namespace renzan {

// Gemm() for an operand B in the layout for tiles.
void GemmInTiles(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
                 BlockedMatrix* c);

// C [m, n] = A [m, k] · B [k, n] of bfloat16, for small matrices that are used once. C is row-major
// float32. Its rows are c_row apart, which is at least n rounded up to 16, and are overwritten up
// to there.
void SmallGemmInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* c, int64_t c_row);

// The same for B = Aᵀ.
void GramMatrixInTiles(const BlockedMatrix& a, float* c, int64_t c_row);

// TransposedGemm() of bfloat16.
void TransposedGemmInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c);

}  // namespace renzan
