#pragma once

// Element-wise operations on row-major arrays [rows, columns] whose rows may be strided. Sums over
// rows are taken in row order, so the result is a function of the values alone. Thread-safe.

#include <cstdint>
#include <span>

namespace renzan {

// y[r, c] += bias[c]
void AddBias(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias);

// y[r, c] = max(y[r, c] + bias[c], 0)
void AddBiasRelu(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias);

// dy[r, c] = y[r, c] > 0 ? dy[r, c] · scale : 0
void ReluBackward(const float* y, int64_t y_stride, float* dy, int64_t dy_stride, int64_t rows,
                  int64_t columns, float scale = 1.0f);

// sum[c] = Σ_r x[r, c]
void SumRows(const float* x, int64_t rows, int64_t columns, int64_t stride, float* sum);

// y = a ⊙ b, and y += a ⊙ b (rounded after the product).
void Multiply(const float* a, const float* b, float* y, int64_t n);
void MultiplyAdd(const float* a, const float* b, float* y, int64_t n);
void Add(const float* a, float* y, int64_t n);

}  // namespace renzan
