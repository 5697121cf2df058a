#pragma once

// Layer normalization of the rows of a matrix, in parts of `width` columns. Sums are in the order
// of the columns and every operation is rounded by itself, so all instruction sets give the same
// bits. Thread-safe.

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct RowNormalization {
  int64_t width;  // all columns are a multiple of it
  float epsilon;
  const float *gamma, *beta;  // [width]
};

// How many values the functions below need as scratch memory.
int64_t RowNormalizationScratch(int64_t columns, int64_t width);

// y = gamma ⊙ x̂ + beta, where x̂ = (x − mean) / √(variance + epsilon) of each part.
void NormalizeRows(const BlockedMatrix& x, const RowNormalization& options, float* scratch,
                   BlockedMatrix* y);

// Of each row the gradients of gamma and beta, and, unless it is null, dx. dx may be dy.
void NormalizeRowsBackward(const BlockedMatrix& x, const BlockedMatrix& dy,
                           const RowNormalization& options, float* scratch, BlockedMatrix* d_gammas,
                           BlockedMatrix* d_betas, BlockedMatrix* dx);

}  // namespace renzan
