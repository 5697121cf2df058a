#include "renzan/model/dot_interaction.h"

#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/dot_interaction.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes on any machine.
using Tag = hn::CappedTag<float, 16>;

// out[r, c] = Σ_k a[r, k]·b[k, c] for kRows rows of a and one vector of columns. Rows of b are
// b_stride apart. The sum runs over k in order, with fused multiply-add if the target has it.
template <int kRows>
HWY_INLINE void RowsTimesColumns(Tag d, const float* a, int64_t a_stride, const float* b,
                                 int64_t b_stride, int64_t depth, float* out, int64_t out_stride) {
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k) {
    const auto column = hn::LoadU(d, b + k * b_stride);
    sum0 = hn::MulAdd(hn::Set(d, a[k]), column, sum0);
    if constexpr (kRows > 1) sum1 = hn::MulAdd(hn::Set(d, a[a_stride + k]), column, sum1);
    if constexpr (kRows > 2) sum2 = hn::MulAdd(hn::Set(d, a[2 * a_stride + k]), column, sum2);
    if constexpr (kRows > 3) sum3 = hn::MulAdd(hn::Set(d, a[3 * a_stride + k]), column, sum3);
  }
  hn::StoreU(sum0, d, out);
  if constexpr (kRows > 1) hn::StoreU(sum1, d, out + out_stride);
  if constexpr (kRows > 2) hn::StoreU(sum2, d, out + 2 * out_stride);
  if constexpr (kRows > 3) hn::StoreU(sum3, d, out + 3 * out_stride);
}

// Up to four rows, all columns [begin, end) in whole vectors: the caller's arrays are padded.
HWY_INLINE void RowBlock(Tag d, int64_t rows, const float* a, int64_t a_stride, const float* b,
                         int64_t b_stride, int64_t depth, int64_t end, float* out,
                         int64_t out_stride) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < end; c += lanes) {
    if (rows == 4) {
      RowsTimesColumns<4>(d, a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    } else if (rows == 3) {
      RowsTimesColumns<3>(d, a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    } else if (rows == 2) {
      RowsTimesColumns<2>(d, a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    } else {
      RowsTimesColumns<1>(d, a, a_stride, b + c, b_stride, depth, out + c, out_stride);
    }
  }
}

// Scratch: x [f, dim], transposed [dim, padded], products [f, padded] and row [width], where padded
// is f rounded up to 16.
void Forward(const BlockedMatrix& features, int64_t f, int64_t dim, BlockedMatrix* out,
             int64_t padded, float* x, float* transposed, float* products, float* row) {
  const Tag d;
  for (int64_t s = 0; s < features.rows(); ++s) {
    features.GetRow(s, 0, x, f * dim);
    for (int64_t i = 0; i < f; ++i)
      for (int64_t k = 0; k < dim; ++k) transposed[k * padded + i] = x[i * dim + k];
    for (int64_t i = 0; i < f; i += 4) {
      const int64_t rows = f - i < 4 ? f - i : 4;
      RowBlock(d, rows, x + i * dim, dim, transposed, padded, dim, i + rows, products + i * padded,
               padded);
    }
    float* y = row;
    for (int64_t k = 0; k < dim; ++k) *y++ = x[k];
    for (int64_t i = 1; i < f; ++i)
      for (int64_t j = 0; j < i; ++j) *y++ = products[i * padded + j];
    out->SetRow(s, 0, row, y - row);
  }
}

// Scratch: row [width], symmetric [f, f], x and dx [f, padded], where padded is dim rounded up to
// 16.
void Backward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f, int64_t dim,
              BlockedMatrix* d_features, int64_t padded, float* row, float* symmetric, float* x,
              float* dx) {
  const Tag d;
  for (int64_t s = 0; s < features.rows(); ++s) {
    d_out.GetRow(s, 0, row, d_out.columns());
    const float* pairs = row + dim;
    for (int64_t i = 0; i < f; ++i) {
      symmetric[i * f + i] = 0.0f;
      for (int64_t j = 0; j < i; ++j) symmetric[i * f + j] = symmetric[j * f + i] = *pairs++;
    }
    for (int64_t i = 0; i < f; ++i) features.GetRow(s, i * dim, x + i * padded, dim);
    for (int64_t i = 0; i < f; i += 4) {
      const int64_t rows = f - i < 4 ? f - i : 4;
      RowBlock(d, rows, symmetric + i * f, f, x, padded, f, padded, dx + i * padded, padded);
    }
    for (int64_t k = 0; k < dim; ++k) dx[k] += row[k];
    for (int64_t i = 0; i < f; ++i) d_features->SetRow(s, i * dim, dx + i * padded, dim);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {
namespace {

int64_t PadTo16(int64_t n) { return (n + 15) / 16 * 16; }

// Grows only; each thread keeps its own.
float* Scratch(int64_t floats) {
  thread_local std::vector<float> scratch;
  if (scratch.size() < static_cast<size_t>(floats)) scratch.resize(static_cast<size_t>(floats));
  return scratch.data();
}

}  // namespace

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void DotInteractionForward(const BlockedMatrix& features, int64_t f, int64_t dim,
                           BlockedMatrix* out) {
  const int64_t padded = PadTo16(f), width = DotInteractionWidth(f, dim);
  float* x = Scratch(f * dim + (dim + f) * padded + width);
  float* transposed = x + f * dim;
  float* products = transposed + dim * padded;
  HWY_DYNAMIC_DISPATCH(Forward)
  (features, f, dim, out, padded, x, transposed, products, products + f * padded);
}

void DotInteractionBackward(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f,
                            int64_t dim, BlockedMatrix* d_features) {
  const int64_t padded = PadTo16(dim), width = DotInteractionWidth(f, dim);
  float* row = Scratch(width + f * f + 2 * f * padded);
  float* symmetric = row + width;
  float* x = symmetric + f * f;
  HWY_DYNAMIC_DISPATCH(Backward)
  (features, d_out, f, dim, d_features, padded, row, symmetric, x, x + f * padded);
}

}  // namespace renzan
#endif
