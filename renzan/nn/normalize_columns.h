#pragma once

// What batch normalization does with the columns of a matrix. Sums are in float64 and in the order
// of the rows; every operation is rounded by itself, so all instruction sets give the same bits.
// Matrices may be of different precisions. Thread-safe.

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// means[c]: the mean of a column; squares[c]: Σ (x − mean)².
void ColumnMoments(const BlockedMatrix& x, double* means, double* squares);

// Of each column. Without `gamma` there is no `beta` either.
struct ColumnScales {
  const float *mean, *scale;
  const float *gamma, *beta;
};

// y = gamma ⊙ x̂ + beta, where x̂ = (x − mean) ⊙ scale
void NormalizeColumns(const BlockedMatrix& x, const ColumnScales& scales, BlockedMatrix* y);

// d_gamma = Σ dy ⊙ x̂, d_beta = Σ dy, and, unless it is null, dx from dy, with `scale` as
// 1 / √(variance of the samples). dx may be dy, whose precision it has.
void NormalizeColumnsBackward(const BlockedMatrix& x, const BlockedMatrix& dy,
                              const ColumnScales& scales, float* d_gamma, float* d_beta,
                              BlockedMatrix* dx);

}  // namespace renzan
