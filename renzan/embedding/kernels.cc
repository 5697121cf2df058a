#include "renzan/embedding/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows are prefetched this many lookups ahead.
constexpr size_t kPrefetch = 16;

HWY_INLINE void Prefetch(const float* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += 16) __builtin_prefetch(row + d);
}

void PoolBag(const float* weights, int64_t dim, const int32_t* ids, size_t n, float scale,
             float* out) {
  if (n == 0) {
    for (int64_t d = 0; d < dim; ++d) out[d] = 0.0f;
    return;
  }
  for (size_t i = 1; i < n; ++i) Prefetch(weights + int64_t{ids[i]} * dim, dim);
  ForEach(static_cast<size_t>(dim), [&](auto tag, size_t d) HWY_ATTR {
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
    ForEach(static_cast<size_t>(dim),
            [&](auto tag, size_t d) HWY_ATTR { hn::StoreU(hn::LoadU(tag, row + d), tag, to + d); });
  }
}

void AddRow(const float* x, int64_t dim, float* sum) {
  ForEach(static_cast<size_t>(dim), [&](auto tag, size_t d) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(tag, sum + d), hn::LoadU(tag, x + d)), tag, sum + d);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(PoolBag);
HWY_EXPORT(GatherRows);
HWY_EXPORT(AddRow);

void PoolBag(const float* weights, int64_t dim, std::span<const int32_t> ids, float scale,
             float* out) {
  HWY_DYNAMIC_DISPATCH(PoolBag)(weights, dim, ids.data(), ids.size(), scale, out);
}
void GatherRows(const float* weights, int64_t dim, std::span<const int32_t> ids, float* out) {
  HWY_DYNAMIC_DISPATCH(GatherRows)(weights, dim, ids.data(), ids.size(), out);
}
void AddRow(const float* x, int64_t dim, float* sum) { HWY_DYNAMIC_DISPATCH(AddRow)(x, dim, sum); }

}  // namespace renzan
#endif
