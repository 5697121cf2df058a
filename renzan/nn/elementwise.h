#pragma once

// Element-wise operations in float32 on matrices of the same shape and precision. Thread-safe.

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// y = max(z, 0); NaN stays NaN.
void Relu(const BlockedMatrix& z, BlockedMatrix* y);

// dy = y > 0 ? dy : 0
void ReluBackward(const BlockedMatrix& y, BlockedMatrix* dy);

// y = a ⊙ b
void Multiply(const BlockedMatrix& a, const BlockedMatrix& b, BlockedMatrix* y);

// y = a ⊙ b + c, rounded after the product; y may be c.
void MultiplyAdd(const BlockedMatrix& a, const BlockedMatrix& b, const BlockedMatrix& c,
                 BlockedMatrix* y);

// y = a
void Copy(const BlockedMatrix& a, BlockedMatrix* y);

// y += a
void Add(const BlockedMatrix& a, BlockedMatrix* y);

// sums[m] = Σ_k a[k, m], in the order of the rows.
void ColumnSums(const BlockedMatrix& a, float* sums);

}  // namespace renzan
