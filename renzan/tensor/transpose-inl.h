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

#if HWY_TARGET == HWY_AVX3
// to[c, r] = from[r, c] for 16 rows and columns, in whole vectors: four lanes at a time would take
// four times as many instructions.
HWY_INLINE void Transpose16(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                            int64_t to_four) {
  const hn::FixedTag<float, 16> d;
  const hn::Repartition<double, decltype(d)> pairs;
  using V = hn::Vec<decltype(d)>;
  V fours[16];  // of rows 4g to 4g + 3: block b of vector 4g + i is column 4b + i
  _Pragma("GCC unroll 4") for (int g = 0; g < 4; ++g) {
    const float* x = from + 4 * g * from_stride;
    const auto x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + from_stride);
    const auto x2 = hn::LoadU(d, x + 2 * from_stride), x3 = hn::LoadU(d, x + 3 * from_stride);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, x0, x1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, x2, x3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, x0, x1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, x2, x3));
    fours[4 * g] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
    fours[4 * g + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
    fours[4 * g + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
    fours[4 * g + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
  }
  _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
    const auto store = [&](int four, auto rows) {
      hn::StoreU(V{rows}, d, to + four * to_four + i * to_stride);
    };
    // Blocks 0 and 1, then 2 and 3, of the two vectors.
    const __m512 a01 = _mm512_shuffle_f32x4(fours[i].raw, fours[4 + i].raw, 0x44);
    const __m512 a23 = _mm512_shuffle_f32x4(fours[i].raw, fours[4 + i].raw, 0xEE);
    const __m512 b01 = _mm512_shuffle_f32x4(fours[8 + i].raw, fours[12 + i].raw, 0x44);
    const __m512 b23 = _mm512_shuffle_f32x4(fours[8 + i].raw, fours[12 + i].raw, 0xEE);
    store(0, _mm512_shuffle_f32x4(a01, b01, 0x88));
    store(1, _mm512_shuffle_f32x4(a01, b01, 0xDD));
    store(2, _mm512_shuffle_f32x4(a23, b23, 0x88));
    store(3, _mm512_shuffle_f32x4(a23, b23, 0xDD));
  }
}
#endif

// Four values of a row; with vectors of eight, the upper half holds those of the row four below.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> LoadFours(hn::FixedTag<float, 4> d, const float* from,
                                                     int64_t /*stride*/) {
  return hn::LoadU(d, from);
}
#if HWY_MAX_BYTES >= 32
HWY_INLINE hn::Vec<hn::FixedTag<float, 8>> LoadFours(hn::FixedTag<float, 8> d, const float* from,
                                                     int64_t stride) {
  const hn::FixedTag<float, 4> half;
  return hn::Combine(d, hn::LoadU(half, from + 4 * stride), hn::LoadU(half, from));
}
#endif

// to[c, r] = from[r, c] for as many rows as `d` has lanes, 4 or 8, and 4 columns.
template <class D>
HWY_INLINE void TransposeFours(D d, const float* from, int64_t from_stride, float* to,
                               int64_t to_stride) {
  const hn::Repartition<double, D> pairs;
  const auto row = [&](int64_t r)
                       HWY_ATTR { return LoadFours(d, from + r * from_stride, from_stride); };
  const auto lower = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto upper = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto x0 = row(0), x1 = row(1), x2 = row(2), x3 = row(3);
  const auto low01 = hn::InterleaveLower(d, x0, x1), high01 = hn::InterleaveUpper(d, x0, x1);
  const auto low23 = hn::InterleaveLower(d, x2, x3), high23 = hn::InterleaveUpper(d, x2, x3);
  hn::StoreU(lower(low01, low23), d, to);
  hn::StoreU(upper(low01, low23), d, to + to_stride);
  hn::StoreU(lower(high01, high23), d, to + 2 * to_stride);
  hn::StoreU(upper(high01, high23), d, to + 3 * to_stride);
}

// to[c, r] = from[r, c] for multiples of 4 rows and columns. Groups of four rows of `to` begin
// `to_four` apart.
HWY_INLINE void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                          float* to, int64_t to_stride, int64_t to_four) {
#if HWY_TARGET == HWY_AVX3
  if (rows % 16 == 0 && columns % 16 == 0) {
    for (int64_t r = 0; r < rows; r += 16)
      for (int64_t c = 0; c < columns; c += 16)
        Transpose16(from + r * from_stride + c, from_stride, to + c / 4 * to_four + r, to_stride,
                    to_four);
    return;
  }
#endif
  const auto all = [&](auto d) HWY_ATTR {
    for (int64_t r = 0; r < rows; r += static_cast<int64_t>(hn::Lanes(d)))
      for (int64_t c = 0; c < columns; c += 4)
        TransposeFours(d, from + r * from_stride + c, from_stride, to + c / 4 * to_four + r,
                       to_stride);
  };
#if HWY_MAX_BYTES >= 32
  if (rows % 8 == 0) return all(hn::FixedTag<float, 8>());
#endif
  all(hn::FixedTag<float, 4>());
}

HWY_INLINE void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                          float* to, int64_t to_stride) {
  Transpose(from, from_stride, rows, columns, to, to_stride, 4 * to_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
