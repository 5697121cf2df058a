// Transposition of small matrices. Include it after <hwy/highway.h>, in a .cc file that
// foreach_target.h includes again for each target.

#if defined(RENZAN_BASE_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_BASE_TRANSPOSE_INL_H_
#undef RENZAN_BASE_TRANSPOSE_INL_H_
#else
#define RENZAN_BASE_TRANSPOSE_INL_H_
#endif

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to[c, r] = from[r, c] for multiples of 4 rows and columns.
HWY_INLINE void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                          float* to, int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
#else
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto lower = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto upper = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const float* x = from + r * from_stride + c;
      const auto x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + from_stride);
      const auto x2 = hn::LoadU(d, x + 2 * from_stride), x3 = hn::LoadU(d, x + 3 * from_stride);
      const auto low01 = hn::InterleaveLower(d, x0, x1), high01 = hn::InterleaveUpper(d, x0, x1);
      const auto low23 = hn::InterleaveLower(d, x2, x3), high23 = hn::InterleaveUpper(d, x2, x3);
      float* y = to + c * to_stride + r;
      hn::StoreU(lower(low01, low23), d, y);
      hn::StoreU(upper(low01, low23), d, y + to_stride);
      hn::StoreU(lower(high01, high23), d, y + 2 * to_stride);
      hn::StoreU(upper(high01, high23), d, y + 3 * to_stride);
    }
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
