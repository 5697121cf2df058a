#include "renzan/model/normalize_rows.h"

#include <algorithm>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/normalize_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/model/rows_in_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using V = hn::Vec<RowLanes>;

constexpr int64_t Lanes() { return static_cast<int64_t>(hn::MaxLanes(RowLanes())); }

// Values of as many rows as a vector has lanes: those of column c are at [c · lanes].
HWY_INLINE V Load(const float* values, int64_t c) {
  return hn::LoadU(RowLanes(), values + c * Lanes());
}
HWY_INLINE void Store(V v, float* values, int64_t c) {
  hn::StoreU(v, RowLanes(), values + c * Lanes());
}
HWY_INLINE V Set(float value) { return hn::Set(RowLanes(), value); }

// x = x̂; returns 1 / √(variance + epsilon).
HWY_INLINE V NormalizePart(const RowNormalization& options, float* x) {
  const V n = Set(static_cast<float>(options.width));
  V sum = Set(0), squares = Set(0);
  for (int64_t c = 0; c < options.width; ++c) sum = hn::Add(sum, Load(x, c));
  const V mean = hn::Div(sum, n);
  for (int64_t c = 0; c < options.width; ++c) {
    const V distance = hn::Sub(Load(x, c), mean);
    squares = hn::Add(squares, hn::Mul(distance, distance));
    Store(distance, x, c);
  }
  const V variance = hn::Add(hn::Div(squares, n), Set(options.epsilon));
  const V scale = hn::Div(Set(1), hn::Sqrt(variance));
  for (int64_t c = 0; c < options.width; ++c) Store(hn::Mul(Load(x, c), scale), x, c);
  return scale;
}

// From the gradient of x̂ to that of x.
HWY_INLINE void ThroughNormalize(const RowNormalization& options, const float* normalized, V scale,
                                 float* d) {
  const V n = Set(static_cast<float>(options.width));
  V sum = Set(0), product = Set(0);
  for (int64_t c = 0; c < options.width; ++c) {
    sum = hn::Add(sum, Load(d, c));
    product = hn::Add(product, hn::Mul(Load(d, c), Load(normalized, c)));
  }
  const V mean = hn::Div(sum, n), mean_product = hn::Div(product, n);
  for (int64_t c = 0; c < options.width; ++c) {
    const V along = hn::Mul(Load(normalized, c), mean_product);
    Store(hn::Mul(scale, hn::Sub(hn::Sub(Load(d, c), mean), along)), d, c);
  }
}

void Normalize(const BlockedMatrix& x, const RowNormalization& options, float* scratch,
               BlockedMatrix* y) {
  for (int64_t row = 0; row < x.rows(); row += Lanes()) {
    ReadRows(x, row, scratch);
    for (int64_t first = 0; first < x.columns(); first += options.width) {
      float* const part = scratch + first * Lanes();
      NormalizePart(options, part);
      for (int64_t c = 0; c < options.width; ++c)
        Store(hn::Add(hn::Mul(Set(options.gamma[c]), Load(part, c)), Set(options.beta[c])), part,
              c);
    }
    WriteRows(scratch, row, y);
  }
}

// Columns in whole blocks, of either precision.
constexpr int64_t Whole(int64_t columns) {
  constexpr int64_t kBlock = 2 * BlockedMatrix::kLanes;
  return (columns + kBlock - 1) / kBlock * kBlock;
}

void NormalizeBackward(const BlockedMatrix& x, const BlockedMatrix& dy,
                       const RowNormalization& options, float* scratch, BlockedMatrix* d_gammas,
                       BlockedMatrix* d_betas, BlockedMatrix* dx) {
  float *const values = scratch, *const d = values + Whole(x.columns()) * Lanes();
  float* const d_gamma = d + Whole(x.columns()) * Lanes();
  float* const d_beta = d_gamma + Whole(options.width) * Lanes();
  for (int64_t row = 0; row < x.rows(); row += Lanes()) {
    ReadRows(x, row, values);
    ReadRows(dy, row, d);
    std::fill_n(d_gamma, 2 * Whole(options.width) * Lanes(), 0.0f);
    for (int64_t first = 0; first < x.columns(); first += options.width) {
      float *const part = values + first * Lanes(), *const d_part = d + first * Lanes();
      const V scale = NormalizePart(options, part);
      for (int64_t c = 0; c < options.width; ++c) {
        const V gradient = Load(d_part, c);
        Store(hn::Add(Load(d_gamma, c), hn::Mul(gradient, Load(part, c))), d_gamma, c);
        Store(hn::Add(Load(d_beta, c), gradient), d_beta, c);
        Store(hn::Mul(gradient, Set(options.gamma[c])), d_part, c);
      }
      ThroughNormalize(options, part, scale, d_part);
    }
    WriteRows(d_gamma, row, d_gammas);
    WriteRows(d_beta, row, d_betas);
    if (dx != nullptr) WriteRows(d, row, dx);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Normalize);
HWY_EXPORT(NormalizeBackward);

int64_t RowNormalizationScratch(int64_t columns, int64_t width) {
  constexpr int64_t kBlock = 2 * BlockedMatrix::kLanes;
  const auto whole = [](int64_t count) { return (count + kBlock - 1) / kBlock * kBlock; };
  return BlockedMatrix::kLanes * 2 * (whole(columns) + whole(width));
}

void NormalizeRows(const BlockedMatrix& x, const RowNormalization& options, float* scratch,
                   BlockedMatrix* y) {
  CHECK(x.rows() == y->rows() && x.columns() == y->columns());
  CHECK(x.columns() % options.width == 0 && x.precision() == y->precision());
  HWY_DYNAMIC_DISPATCH(Normalize)(x, options, scratch, y);
}

void NormalizeRowsBackward(const BlockedMatrix& x, const BlockedMatrix& dy,
                           const RowNormalization& options, float* scratch, BlockedMatrix* d_gammas,
                           BlockedMatrix* d_betas, BlockedMatrix* dx) {
  CHECK(x.rows() == dy.rows() && x.columns() == dy.columns());
  CHECK(x.columns() % options.width == 0);
  HWY_DYNAMIC_DISPATCH(NormalizeBackward)(x, dy, options, scratch, d_gammas, d_betas, dx);
}

}  // namespace renzan
#endif
