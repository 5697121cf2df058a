#include "renzan/model/dot_interaction.h"

#include <algorithm>

#include "renzan/model/dot_interaction_gemm.h"
#include "renzan/model/dot_interaction_scratch.h"
#include "renzan/model/dot_interaction_tiles.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/dot_interaction.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/transpose-inl.h"

#undef RENZAN_UNROLL
#define RENZAN_UNROLL _Pragma("GCC unroll 8")

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes on any machine.
using Tag = hn::CappedTag<float, 16>;

// out[r, c] = Σ_k a[r, k]·b[k, c] for kRows rows of a and one vector of columns. The sum runs over
// k in order, with fused multiply-add if the target has it.
template <int kRows>
HWY_INLINE void RowsTimesColumns(const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                                 int64_t depth, float* out, int64_t out_stride) {
  const Tag d;
  hn::Vec<Tag> sum[kRows];
  RENZAN_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k) {
    const auto column = hn::LoadU(d, b + k * b_stride);
    RENZAN_UNROLL for (int r = 0; r < kRows; ++r) sum[r] =
        hn::MulAdd(hn::Set(d, a[r * a_stride + k]), column, sum[r]);
  }
  RENZAN_UNROLL for (int r = 0; r < kRows; ++r) hn::StoreU(sum[r], d, out + r * out_stride);
}

// The same for 4 or 8 rows and all columns [0, end), in whole vectors: the arrays are padded.
HWY_INLINE void RowBlock(int64_t rows, const float* a, int64_t a_stride, const float* b,
                         int64_t b_stride, int64_t depth, int64_t end, float* out,
                         int64_t out_stride) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  for (int64_t c = 0; c < end; c += lanes) {
    if (rows == 8) {
      RowsTimesColumns<8>(a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    } else {
      RowsTimesColumns<4>(a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    }
  }
}

// A row's lines are too far apart for the processor to expect them, so they are prefetched this
// many samples ahead.
constexpr int64_t kPrefetch = 4;

HWY_INLINE int64_t BlockRows(int64_t rest) { return rest > 4 ? 8 : 4; }

// The pairs of one sample, row by row of the lower triangle of products [f, f]. Whole vectors are
// copied: what one row leaves behind its end, the next one overwrites.
HWY_INLINE float* CopyLowerTriangle(const float* products, int64_t stride, int64_t f, float* to) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 1; i < f; ++i) {
    for (int64_t j = 0; j < i; j += lanes)
      hn::StoreU(hn::LoadU(d, products + i * stride + j), d, to + j);
    to += i;
  }
  return to;
}

// A sample's vectors from and to an array, by one call if it has no gaps.
HWY_INLINE void GetVectors(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                           int64_t x_stride, float* x) {
  if (x_stride == dim) return features.GetRow(s, 0, x, f * dim);
  for (int64_t i = 0; i < f; ++i) features.GetRow(s, i * dim, x + i * x_stride, dim);
}
HWY_INLINE void SetVectors(const float* x, int64_t x_stride, int64_t s, int64_t f, int64_t dim,
                           BlockedMatrix* features) {
  if (x_stride == dim) return features->SetRow(s, 0, x, f * dim);
  for (int64_t i = 0; i < f; ++i) features->SetRow(s, i * dim, x + i * x_stride, dim);
}

// Of one sample: the lower triangle of products.
HWY_INLINE void Products(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                         const Scratch& scratch) {
  const int64_t x_stride = scratch.x_stride, f_stride = scratch.f_stride;
  GetVectors(features, s, f, dim, x_stride, scratch.x);
  Transpose(scratch.x, x_stride, RoundUp(f, 4), RoundUp(dim, 4), scratch.transposed, f_stride);
  for (int64_t i = 0, rows; i < f; i += rows) {
    rows = BlockRows(f - i);
    RowBlock(rows, scratch.x + i * x_stride, x_stride, scratch.transposed, f_stride, dim,
             std::min(i + rows, f), scratch.products + i * f_stride, f_stride);
  }
}

// Of one sample: dx from the gradient of its products, a symmetric matrix.
HWY_INLINE void Gradients(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                          const float* d_products, const Scratch& scratch) {
  const int64_t x_stride = scratch.x_stride, f_stride = scratch.f_stride;
  GetVectors(features, s, f, dim, x_stride, scratch.x);
  for (int64_t i = 0, rows; i < f; i += rows) {
    rows = BlockRows(f - i);
    RowBlock(rows, d_products + i * f_stride, f_stride, scratch.x, x_stride, f, dim,
             scratch.dx + i * x_stride, x_stride);
  }
}

void Forward(const BlockedMatrix& features, int64_t f, int64_t dim, bool tiles,
             const Scratch& scratch, BlockedMatrix* out) {
  for (int64_t s = 0; s < features.rows(); ++s) {
    features.PrefetchRow(s + kPrefetch);
    out->PrefetchRow(s + kPrefetch);
    if (tiles) {
      ProductsByGemm(features, s, f, dim, scratch);
    } else {
      Products(features, s, f, dim, scratch);
    }
    features.GetRow(s, 0, scratch.row, dim);
    const float* end = CopyLowerTriangle(scratch.products, scratch.f_stride, f, scratch.row + dim);
    out->SetRow(s, 0, scratch.row, end - scratch.row);
  }
}

void Backward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f, int64_t dim,
              bool tiles, const Scratch& scratch, BlockedMatrix* d_features) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t x_stride = scratch.x_stride, f_stride = scratch.f_stride;
  // The products' gradient as a symmetric matrix with zeros on the diagonal.
  float* lower = scratch.products;
  float* upper = scratch.transposed;
  std::fill_n(lower, RoundUp(f, 8) * f_stride, 0.0f);
  for (int64_t s = 0; s < features.rows(); ++s) {
    features.PrefetchRow(s + kPrefetch);
    d_out.PrefetchRow(s + kPrefetch);
    d_features->PrefetchRow(s + kPrefetch);
    d_out.GetRow(s, 0, scratch.row, d_out.columns());
    const float* pairs = scratch.row + dim;
    for (int64_t i = 1; i < f; pairs += i, ++i)
      for (int64_t j = 0; j < i; j += lanes) {
        const auto row = hn::FirstN(d, static_cast<size_t>(i - j));
        hn::StoreU(hn::IfThenElseZero(row, hn::LoadU(d, pairs + j)), d, lower + i * f_stride + j);
      }
    Transpose(lower, f_stride, RoundUp(f, 4), RoundUp(f, 4), upper, f_stride);
    for (int64_t i = 0; i < f; ++i)
      for (int64_t j = 0; j < f; j += lanes) {
        float* sum = upper + i * f_stride + j;
        hn::StoreU(hn::Add(hn::LoadU(d, sum), hn::LoadU(d, lower + i * f_stride + j)), d, sum);
      }
    if (tiles) {
      GradientsByGemm(features, s, f, dim, upper, scratch);
    } else {
      Gradients(features, s, f, dim, upper, scratch);
    }
    for (int64_t k = 0; k < dim; ++k) scratch.dx[k] += scratch.row[k];
    SetVectors(scratch.dx, x_stride, s, f, dim, d_features);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

namespace {

bool UsesTiles(const BlockedMatrix& features) {
  return features.precision() == Precision::kBFloat16 &&
         BFloat16ProductsOfIsa() == BFloat16Products::kTiles;
}

}  // namespace

void DotInteractionForward(const BlockedMatrix& features, int64_t f, int64_t dim,
                           BlockedMatrix* out) {
  if (UsesTiles(features) && FitsTiles(f, dim) && out->precision() == Precision::kBFloat16)
    return DotInteractionForwardInTiles(features, f, dim, out);
  HWY_DYNAMIC_DISPATCH(Forward)
  (features, f, dim, UsesTiles(features), ScratchOfThisThread(f, dim), out);
}

void DotInteractionBackward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f,
                            int64_t dim, BlockedMatrix* d_features) {
  if (UsesTiles(features) && FitsTiles(f, dim) && d_out.precision() == Precision::kBFloat16 &&
      d_features->precision() == Precision::kBFloat16)
    return DotInteractionBackwardInTiles(features, d_out, f, dim, d_features);
  HWY_DYNAMIC_DISPATCH(Backward)
  (features, d_out, f, dim, UsesTiles(features), ScratchOfThisThread(f, dim), d_features);
}

}  // namespace renzan
#endif
