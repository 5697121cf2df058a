#pragma once

// Products of bfloat16 in the registers for tiles of Intel's AMX, or in an emulation of them that
// computes the same bits. Used by gemm.h, which has the definition.

#include "renzan/nn/gemm.h"

namespace renzan {

// Gemm() for an operand B in the layout for tiles.
void GemmInTiles(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
                 BlockedMatrix* c);

// TransposedGemm() of bfloat16.
void TransposedGemmInTiles(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c);

}  // namespace renzan
