#include "renzan/nn/elementwise.h"

// Plain loops, compiled once per instruction set: the compiler vectorises them, and since it may
// neither fuse nor reorder, every target gives the same bits.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

void AddBias(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias) {
  for (int64_t r = 0; r < rows; ++r) {
    float* HWY_RESTRICT row = y + r * stride;
    for (int64_t c = 0; c < columns; ++c) row[c] += bias[c];
  }
}

void AddBiasRelu(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias) {
  for (int64_t r = 0; r < rows; ++r) {
    float* HWY_RESTRICT row = y + r * stride;
    for (int64_t c = 0; c < columns; ++c) {
      const float x = row[c] + bias[c];
      row[c] = x < 0.0f ? 0.0f : x;  // NaN stays NaN, so that divergence shows in the loss
    }
  }
}

void ReluBackward(const float* y, int64_t y_stride, float* dy, int64_t dy_stride, int64_t rows,
                  int64_t columns, float scale) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* HWY_RESTRICT out = y + r * y_stride;
    float* HWY_RESTRICT grad = dy + r * dy_stride;
    for (int64_t c = 0; c < columns; ++c) grad[c] = out[c] > 0.0f ? grad[c] * scale : 0.0f;
  }
}

void SumRows(const float* x, int64_t rows, int64_t columns, int64_t stride, float* sum) {
  for (int64_t c = 0; c < columns; ++c) sum[c] = 0.0f;
  for (int64_t r = 0; r < rows; ++r) {
    const float* HWY_RESTRICT row = x + r * stride;
    float* HWY_RESTRICT total = sum;
    for (int64_t c = 0; c < columns; ++c) total[c] += row[c];
  }
}

void Multiply(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT y,
              int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void MultiplyAdd(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT y,
                 int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}

void Add(const float* HWY_RESTRICT a, float* HWY_RESTRICT y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(AddBias);
HWY_EXPORT(AddBiasRelu);
HWY_EXPORT(ReluBackward);
HWY_EXPORT(SumRows);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(Add);

void AddBias(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias) {
  HWY_DYNAMIC_DISPATCH(AddBias)(y, rows, columns, stride, bias);
}
void AddBiasRelu(float* y, int64_t rows, int64_t columns, int64_t stride, const float* bias) {
  HWY_DYNAMIC_DISPATCH(AddBiasRelu)(y, rows, columns, stride, bias);
}
void ReluBackward(const float* y, int64_t y_stride, float* dy, int64_t dy_stride, int64_t rows,
                  int64_t columns, float scale) {
  HWY_DYNAMIC_DISPATCH(ReluBackward)(y, y_stride, dy, dy_stride, rows, columns, scale);
}
void SumRows(const float* x, int64_t rows, int64_t columns, int64_t stride, float* sum) {
  HWY_DYNAMIC_DISPATCH(SumRows)(x, rows, columns, stride, sum);
}
void Multiply(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Multiply)(a, b, y, n);
}
void MultiplyAdd(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplyAdd)(a, b, y, n);
}
void Add(const float* a, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Add)(a, y, n); }

}  // namespace renzan
#endif
