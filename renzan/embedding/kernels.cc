#include "renzan/embedding/kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of the bags ahead are asked for this many lookups early.
constexpr size_t kPrefetch = 16;

HWY_INLINE void Prefetch(const float* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += 16) __builtin_prefetch(row + d);
}

// body(lanes, d) over [0, dim) in whole vectors, then single elements.
template <class Body>
HWY_INLINE void ForEach(int64_t dim, Body body) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t d = 0;
  for (; d + lanes <= dim; d += lanes) body(wide, d);
  for (; d < dim; ++d) body(one, d);
}

void PoolBag(const float* weights, int64_t dim, const int32_t* ids, size_t n, float scale,
             float* out) {
  if (n == 0) {
    for (int64_t d = 0; d < dim; ++d) out[d] = 0.0f;
    return;
  }
  for (size_t i = 1; i < n; ++i) Prefetch(weights + int64_t{ids[i]} * dim, dim);
  ForEach(dim, [&](auto tag, int64_t d) HWY_ATTR {
    auto sum = hn::LoadU(tag, weights + int64_t{ids[0]} * dim + d);
    for (size_t i = 1; i < n; ++i)
      sum = hn::Add(sum, hn::LoadU(tag, weights + int64_t{ids[i]} * dim + d));
    if (scale != 1.0f) sum = hn::Mul(sum, hn::Set(tag, scale));
    hn::StoreU(sum, tag, out + d);
  });
}

void GatherRows(const float* weights, int64_t dim, const int32_t* ids, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    if (i + kPrefetch < n) Prefetch(weights + int64_t{ids[i + kPrefetch]} * dim, dim);
    const float* row = weights + int64_t{ids[i]} * dim;
    float* to = out + static_cast<int64_t>(i) * dim;
    ForEach(dim, [&](auto tag, int64_t d)
                     HWY_ATTR { hn::StoreU(hn::LoadU(tag, row + d), tag, to + d); });
  }
}

void ScaleRow(float scale, int64_t dim, float* x) {
  ForEach(dim, [&](auto tag, int64_t d) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(tag, x + d), hn::Set(tag, scale)), tag, x + d);
  });
}

void AddRow(const float* x, int64_t dim, float* sum) {
  ForEach(dim, [&](auto tag, int64_t d) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(tag, sum + d), hn::LoadU(tag, x + d)), tag, sum + d);
  });
}

void SgdRow(float lr, const float* g, int64_t dim, float* w) {
  ForEach(dim, [&](auto tag, int64_t d) HWY_ATTR {
    hn::StoreU(hn::Sub(hn::LoadU(tag, w + d), hn::Mul(hn::Set(tag, lr), hn::LoadU(tag, g + d))),
               tag, w + d);
  });
}

void AdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w) {
  ForEach(dim, [&](auto tag, int64_t d) HWY_ATTR {
    const auto grad = hn::LoadU(tag, g + d);
    const auto sum = hn::Add(hn::LoadU(tag, s + d), hn::Mul(grad, grad));
    hn::StoreU(sum, tag, s + d);
    const auto step =
        hn::Div(hn::Mul(hn::Set(tag, lr), grad), hn::Add(hn::Sqrt(sum), hn::Set(tag, epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(tag, w + d), step), tag, w + d);
  });
}

// Plain loops of 16: the compiler keeps the order and vectorises within a level of the tree.
HWY_INLINE float SumOfSquares(const float* g, int64_t dim) {
  float total = 0.0f;
  for (int64_t begin = 0; begin < dim; begin += 16) {
    float part[16];
    for (int64_t i = 0; i < 16; ++i) {
      const float x = begin + i < dim ? g[begin + i] : 0.0f;
      part[i] = x * x;
    }
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) part[i] += part[i + half];
    total += part[0];
  }
  return total;
}

void RowWiseAdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w) {
  *s += SumOfSquares(g, dim) / static_cast<float>(dim);
  SgdRow(lr / (std::sqrt(*s) + epsilon), g, dim, w);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(PoolBag);
HWY_EXPORT(GatherRows);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(AddRow);
HWY_EXPORT(SgdRow);
HWY_EXPORT(AdagradRow);
HWY_EXPORT(RowWiseAdagradRow);

void PoolBag(const float* weights, int64_t dim, std::span<const int32_t> ids, float scale,
             float* out) {
  HWY_DYNAMIC_DISPATCH(PoolBag)(weights, dim, ids.data(), ids.size(), scale, out);
}
void GatherRows(const float* weights, int64_t dim, std::span<const int32_t> ids, float* out) {
  HWY_DYNAMIC_DISPATCH(GatherRows)(weights, dim, ids.data(), ids.size(), out);
}
void ScaleRow(float scale, int64_t dim, float* x) { HWY_DYNAMIC_DISPATCH(ScaleRow)(scale, dim, x); }
void AddRow(const float* x, int64_t dim, float* sum) { HWY_DYNAMIC_DISPATCH(AddRow)(x, dim, sum); }
void SgdRow(float lr, const float* g, int64_t dim, float* w) {
  HWY_DYNAMIC_DISPATCH(SgdRow)(lr, g, dim, w);
}
void AdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w) {
  HWY_DYNAMIC_DISPATCH(AdagradRow)(lr, epsilon, g, dim, s, w);
}
void RowWiseAdagradRow(float lr, float epsilon, const float* g, int64_t dim, float* s, float* w) {
  HWY_DYNAMIC_DISPATCH(RowWiseAdagradRow)(lr, epsilon, g, dim, s, w);
}

}  // namespace renzan
#endif
