// Products of small float32 matrices that are in the cache. Include it after <hwy/highway.h>, in a
// .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_MODEL_SMALL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_MODEL_SMALL_PRODUCT_INL_H_
#undef RENZAN_MODEL_SMALL_PRODUCT_INL_H_
#else
#define RENZAN_MODEL_SMALL_PRODUCT_INL_H_
#endif

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A matrix that is read value by value, so either of its strides may be 1.
struct ScalarsAt {
  const float* first;
  int64_t row_stride, column_stride;
};

// Some rows and vectors of the product below, held in registers.
template <int kRows, int kVectors, class D>
HWY_INLINE void SmallProductTile(D d, const ScalarsAt& a, int64_t row, int64_t depth,
                                 const float* b, int64_t b_stride, float* c, int64_t c_stride) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kRows][kVectors];
  _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r)
      _Pragma("GCC unroll 8") for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  const float* left = a.first + row * a.row_stride;
  for (int64_t k = 0; k < depth; ++k, left += a.column_stride, b += b_stride) {
    hn::Vec<D> right[kVectors];
    _Pragma("GCC unroll 8") for (int v = 0; v < kVectors; ++v) right[v] =
        hn::LoadU(d, b + v * lanes);
    _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r) {
      const auto value = hn::Set(d, left[r * a.row_stride]);
      _Pragma("GCC unroll 8") for (int v = 0; v < kVectors; ++v) sums[r][v] =
          hn::MulAdd(value, right[v], sums[r][v]);
    }
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < kRows; ++r)
      _Pragma("GCC unroll 8") for (int v = 0; v < kVectors; ++v)
          hn::StoreU(sums[r][v], d, c + (row + r) * c_stride + v * lanes);
}

// c[rows, columns] = a[rows, depth] · b[depth, columns], for a multiple of 16 columns. Every
// element is one chain of fused multiply-adds over `depth` in ascending order, as those of gemm.h.
inline HWY_NOINLINE void SmallProduct(const ScalarsAt& a, int64_t rows, int64_t depth,
                                      const float* b, int64_t b_stride, int64_t columns, float* c,
                                      int64_t c_stride) {
  const hn::CappedTag<float, 16> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kRows = 4;
  for (int64_t column = 0; column < columns;) {
    const bool two = column + 2 * lanes <= columns;
    for (int64_t row = 0; row < rows;) {
      const bool whole = row + kRows <= rows;
      const float* const from = b + column;
      float* const to = c + column;
      if (two && whole) {
        SmallProductTile<kRows, 2>(d, a, row, depth, from, b_stride, to, c_stride);
      } else if (two) {
        SmallProductTile<1, 2>(d, a, row, depth, from, b_stride, to, c_stride);
      } else if (whole) {
        SmallProductTile<kRows, 1>(d, a, row, depth, from, b_stride, to, c_stride);
      } else {
        SmallProductTile<1, 1>(d, a, row, depth, from, b_stride, to, c_stride);
      }
      row += whole ? kRows : 1;
    }
    column += (two ? 2 : 1) * lanes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
