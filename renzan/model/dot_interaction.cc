#include "renzan/model/dot_interaction.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/model/dot_interaction_gemm.h"
#include "renzan/model/dot_interaction_scratch.h"
#include "renzan/model/dot_interaction_tiles.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/dot_interaction.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/model/rows_in_lanes-inl.h"

#undef RENZAN_UNROLL
#define RENZAN_UNROLL _Pragma("GCC unroll 4")

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of sums is as large as AVX2's registers allow: 12 sums and 3 or 4 operands.
constexpr int64_t kRows = 3, kColumns = 4;
using V = hn::Vec<RowLanes>;

// For as many samples as there are lanes: sum[r][c] = Σ_k a[r][k]·b[c][k], over k in order, with
// fused multiply-add if the target has it.
HWY_INLINE void SumBlock(const float* const (&a)[kRows], const float* const (&b)[kColumns],
                         int64_t depth, V (&sum)[kRows][kColumns]) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  RENZAN_UNROLL for (auto& row : sum) RENZAN_UNROLL for (auto& s : row) s = hn::Zero(d);
  for (int64_t k = 0; k < depth * lanes; k += lanes) {
    V column[kColumns];
    RENZAN_UNROLL for (int c = 0; c < kColumns; ++c) column[c] = hn::Load(d, b[c] + k);
    RENZAN_UNROLL for (int r = 0; r < kRows; ++r) {
      const V value = hn::Load(d, a[r] + k);
      RENZAN_UNROLL for (int c = 0; c < kColumns; ++c) sum[r][c] =
          hn::MulAdd(value, column[c], sum[r][c]);
    }
  }
}

// <x_i, x_j> for j < i, row by row of the lower triangle.
HWY_NOINLINE void Products(const float* x, int64_t f, int64_t dim, float* pairs) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vector = [&](int64_t i) HWY_ATTR { return x + std::min(i, f - 1) * dim * lanes; };
  for (int64_t i = 0; i < f; i += kRows) {
    const int64_t rows = std::min(kRows, f - i);
    for (int64_t j = 0; j < i + rows - 1; j += kColumns) {
      // Sums outside the triangle are computed but not stored.
      V sum[kRows][kColumns];
      SumBlock({vector(i), vector(i + 1), vector(i + 2)},
               {vector(j), vector(j + 1), vector(j + 2), vector(j + 3)}, dim, sum);
      RENZAN_UNROLL for (int r = 0; r < kRows; ++r) {
        float* to = pairs + ((i + r) * (i + r - 1) / 2 + j) * lanes;
        RENZAN_UNROLL for (int c = 0; c < kColumns; ++c) if (r < rows && j + c < i + r)
            hn::Store(sum[r][c], d, to + c * lanes);
      }
    }
  }
}

// The gradients of the products as a symmetric matrix [f, f] with zeros on the diagonal.
HWY_NOINLINE void UnpackTriangle(const float* pairs, int64_t f, float* matrix) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < f; ++i) {
    for (int64_t j = 0; j < i; ++j, pairs += lanes) {
      const V pair = hn::Load(d, pairs);
      hn::Store(pair, d, matrix + (i * f + j) * lanes);
      hn::Store(pair, d, matrix + (j * f + i) * lanes);
    }
    hn::Store(hn::Zero(d), d, matrix + (i * f + i) * lanes);
  }
}

// dx_i = Σ_j d_products[i, j]·x_j.
HWY_NOINLINE void Gradients(const float* d_products, const float* x, int64_t f, int64_t dim,
                            float* strip, float* dx) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto row = [&](int64_t i) HWY_ATTR { return d_products + std::min(i, f - 1) * f * lanes; };
  const auto column = [&](int64_t c) HWY_ATTR { return strip + c * f * lanes; };
  for (int64_t k = 0; k < dim; k += kColumns) {
    // A few columns of all vectors, copied, because in place they would compete for a few sets of
    // the cache.
    for (int64_t j = 0; j < f; ++j)
      RENZAN_UNROLL for (int64_t c = 0; c < kColumns; ++c)
          hn::Store(hn::Load(d, x + (j * dim + k + c) * lanes), d, column(c) + j * lanes);
    for (int64_t i = 0; i < f; i += kRows) {
      // Sums outside the vectors are computed but not stored.
      V sum[kRows][kColumns];
      SumBlock({row(i), row(i + 1), row(i + 2)}, {column(0), column(1), column(2), column(3)}, f,
               sum);
      RENZAN_UNROLL for (int r = 0; r < kRows; ++r) {
        float* to = dx + ((i + r) * dim + k) * lanes;
        RENZAN_UNROLL for (int c = 0; c < kColumns; ++c) if (i + r < f && k + c < dim)
            hn::Store(sum[r][c], d, to + c * lanes);
      }
    }
  }
}

void Forward(const BlockedMatrix& features, int64_t f, int64_t dim, BlockedMatrix* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(RowLanes())), width = out->columns();
  const auto scratch = DotInteractionScratch::OfThisThread(f, dim, width, lanes);
  std::fill_n(scratch.out + width * lanes, out->block_columns() * lanes, 0.0f);
  for (int64_t s = 0; s < features.rows(); s += lanes) {
    ReadRows(features, s, scratch.x);
    std::copy_n(scratch.x, dim * lanes, scratch.out);
    Products(scratch.x, f, dim, scratch.out + dim * lanes);
    WriteRows(scratch.out, s, out);
  }
}

void Backward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f, int64_t dim,
              BlockedMatrix* d_features) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(RowLanes()));
  const auto scratch = DotInteractionScratch::OfThisThread(f, dim, d_out.columns(), lanes);
  std::fill_n(scratch.dx + f * dim * lanes, d_features->block_columns() * lanes, 0.0f);
  for (int64_t s = 0; s < features.rows(); s += lanes) {
    ReadRows(features, s, scratch.x);
    ReadRows(d_out, s, scratch.out);
    UnpackTriangle(scratch.out + dim * lanes, f, scratch.pairs);
    Gradients(scratch.pairs, scratch.x, f, dim, scratch.strip, scratch.dx);
    for (int64_t k = 0; k < dim * lanes; ++k) scratch.dx[k] += scratch.out[k];
    WriteRows(scratch.dx, s, d_features);
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
  CHECK(features.columns() == f * dim && out->columns() == DotInteractionWidth(f, dim));
  if (!UsesTiles(features)) return HWY_DYNAMIC_DISPATCH(Forward)(features, f, dim, out);
  if (FitsTiles(f, dim) && out->precision() == Precision::kBFloat16)
    return DotInteractionForwardInTiles(features, f, dim, out);
  DotInteractionForwardByGemm(features, f, dim, out);
}

void DotInteractionBackward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f,
                            int64_t dim, BlockedMatrix* d_features) {
  CHECK(features.columns() == f * dim && d_features->columns() == f * dim &&
        d_out.columns() == DotInteractionWidth(f, dim));
  if (!UsesTiles(features))
    return HWY_DYNAMIC_DISPATCH(Backward)(features, d_out, f, dim, d_features);
  if (FitsTiles(f, dim) && d_out.precision() == Precision::kBFloat16 &&
      d_features->precision() == Precision::kBFloat16)
    return DotInteractionBackwardInTiles(features, d_out, f, dim, d_features);
  DotInteractionBackwardByGemm(features, d_out, f, dim, d_features);
}

}  // namespace renzan
#endif
