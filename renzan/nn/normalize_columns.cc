#include "renzan/nn/normalize_columns.h"

#include <algorithm>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/normalize_columns.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/tensor/stored_values-inl.h"

// The loops over the vectors of a line must be unrolled, so that sums stay in registers.
#undef RENZAN_UNROLL
#define RENZAN_UNROLL _Pragma("GCC unroll 8")

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sixteen columns are computed at once, row after row, in these vectors.
constexpr int64_t kWidth = BlockedMatrix::kLanes;
using Tag = hn::CappedTag<float, kWidth>;
using Wide = hn::CappedTag<double, kWidth>;
using V = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
constexpr int kParts = static_cast<int>(kWidth) / kLanes;
constexpr int kWideLanes = static_cast<int>(hn::MaxLanes(Wide()));
constexpr int kWideParts = static_cast<int>(kWidth) / kWideLanes;

// The values of columns [first, first + 16).
template <class Type>
class Lines {
 public:
  Lines(const BlockedMatrix& matrix, int64_t first)
      : values_(reinterpret_cast<Value*>(const_cast<float*>(matrix.block(first / kLine))) +
                first % kLine) {}
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, int64_t row, int part) const {
    return Type::Load(d, values_ + row * kLine + part * static_cast<int64_t>(hn::Lanes(d)));
  }
  // In float64.
  HWY_INLINE hn::Vec<Wide> LoadWide(int64_t row, int part) const {
    return hn::PromoteTo(Wide(), Load(hn::Rebind<float, Wide>(), row, part));
  }
  HWY_INLINE void Store(V v, int64_t row, int part) const {
    Type::Store(v, Tag(), values_ + row * kLine + part * kLanes);
  }

 private:
  using Value = typename Type::Value;
  static constexpr int64_t kLine = kWidth * int64_t{sizeof(float) / sizeof(Value)};
  Value* values_;
};

// Those columns' values of an array, or zeros if there is none; 0 beyond its last column, so that
// the columns that fill up a block stay zero.
template <class T>
struct Columns {
  HWY_ALIGN T values[kWidth] = {};

  Columns() = default;
  Columns(const T* from, int64_t first, int64_t count) {
    if (from != nullptr) std::copy_n(from + first, count, values);
  }
};

HWY_INLINE V At(const Columns<float>& columns, int part) {
  return hn::Load(Tag(), columns.values + part * kLanes);
}

// Σ over the rows of term(row, part), a vector of float64 for each part of the columns.
template <class Term>
HWY_INLINE Columns<double> SumOfRows(int64_t rows, const Term& term) {
  hn::Vec<Wide> sums[kWideParts];
  RENZAN_UNROLL for (int p = 0; p < kWideParts; ++p) sums[p] = hn::Zero(Wide());
  for (int64_t row = 0; row < rows; ++row) {
    RENZAN_UNROLL for (int p = 0; p < kWideParts; ++p) sums[p] = hn::Add(sums[p], term(row, p));
  }
  Columns<double> all;
  RENZAN_UNROLL for (int p = 0; p < kWideParts; ++p)
      hn::Store(sums[p], Wide(), all.values + p * kWideLanes);
  return all;
}

template <class X>
HWY_INLINE void Moments(const BlockedMatrix& x, double* means, double* squares) {
  for (int64_t first = 0; first < x.columns(); first += kWidth) {
    const Lines<X> lines(x, first);
    Columns<double> mean =
        SumOfRows(x.rows(), [&](int64_t row, int p) HWY_ATTR { return lines.LoadWide(row, p); });
    for (double& value : mean.values) value /= static_cast<double>(x.rows());
    const Columns<double> sums = SumOfRows(x.rows(), [&](int64_t row, int p) HWY_ATTR {
      const auto distance =
          hn::Sub(lines.LoadWide(row, p), hn::Load(Wide(), mean.values + p * kWideLanes));
      return hn::Mul(distance, distance);
    });
    const int64_t count = std::min(kWidth, x.columns() - first);
    std::copy_n(mean.values, count, means + first);
    std::copy_n(sums.values, count, squares + first);
  }
}

template <class X, class Y>
HWY_INLINE void Normalize(const BlockedMatrix& x, const ColumnScales& s, BlockedMatrix* y) {
  for (int64_t first = 0; first < x.columns(); first += kWidth) {
    const int64_t count = std::min(kWidth, x.columns() - first);
    const Lines<X> from(x, first);
    const Lines<Y> to(*y, first);
    const Columns<float> mean(s.mean, first, count), scale(s.scale, first, count);
    const Columns<float> gamma(s.gamma, first, count), beta(s.beta, first, count);
    for (int64_t row = 0; row < x.rows(); ++row) {
      RENZAN_UNROLL for (int p = 0; p < kParts; ++p) {
        V v = hn::Mul(hn::Sub(from.Load(Tag(), row, p), At(mean, p)), At(scale, p));
        if (s.gamma != nullptr) v = hn::Add(hn::Mul(At(gamma, p), v), At(beta, p));
        to.Store(v, row, p);
      }
    }
  }
}

// Of sixteen columns, in float32, because x̂ is.
template <class X>
struct Normalized {
  Lines<X> lines;
  Columns<float> mean, scale;

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, int64_t row, int part) const {
    const int64_t at = part * static_cast<int64_t>(hn::Lanes(d));
    return hn::Mul(hn::Sub(lines.Load(d, row, part), hn::LoadU(d, mean.values + at)),
                   hn::LoadU(d, scale.values + at));
  }
};

template <class X, class Y>
HWY_INLINE void Backward(const BlockedMatrix& x, const BlockedMatrix& dy, const ColumnScales& s,
                         float* d_gamma, float* d_beta, BlockedMatrix* dx) {
  const double n = static_cast<double>(x.rows());
  for (int64_t first = 0; first < x.columns(); first += kWidth) {
    const int64_t count = std::min(kWidth, x.columns() - first);
    const Normalized<X> normalized{
        Lines<X>(x, first), {s.mean, first, count}, {s.scale, first, count}};
    const Lines<Y> d(dy, first);
    const Columns<double> sums =
        SumOfRows(x.rows(), [&](int64_t row, int p) HWY_ATTR { return d.LoadWide(row, p); });
    const Columns<double> products = SumOfRows(x.rows(), [&](int64_t row, int p) HWY_ATTR {
      const hn::Rebind<float, Wide> narrow;
      return hn::Mul(d.LoadWide(row, p), hn::PromoteTo(Wide(), normalized.Load(narrow, row, p)));
    });
    Columns<float> factor(s.gamma, first, count), mean_d, mean_product;
    for (int64_t c = 0; c < count; ++c) {
      d_gamma[first + c] = static_cast<float>(products.values[c]);
      d_beta[first + c] = static_cast<float>(sums.values[c]);
      const float scale = normalized.scale.values[c];
      factor.values[c] = s.gamma != nullptr ? factor.values[c] * scale : scale;
      mean_d.values[c] = static_cast<float>(sums.values[c] / n);
      mean_product.values[c] = static_cast<float>(products.values[c] / n);
    }
    if (dx == nullptr) continue;
    const Lines<Y> to(*dx, first);
    for (int64_t row = 0; row < x.rows(); ++row) {
      RENZAN_UNROLL for (int p = 0; p < kParts; ++p) {
        const V product = hn::Mul(normalized.Load(Tag(), row, p), At(mean_product, p));
        const V rest = hn::Sub(hn::Sub(d.Load(Tag(), row, p), At(mean_d, p)), product);
        to.Store(hn::Mul(At(factor, p), rest), row, p);
      }
    }
  }
}

void MomentsOn(const BlockedMatrix& x, double* means, double* squares) {
  WithTypeOf(x.precision(),
             [&](auto type) HWY_ATTR { Moments<decltype(type)>(x, means, squares); });
}

void NormalizeOn(const BlockedMatrix& x, const ColumnScales& scales, BlockedMatrix* y) {
  WithTypeOf(x.precision(), [&](auto from) HWY_ATTR {
    WithTypeOf(y->precision(),
               [&](auto to) HWY_ATTR { Normalize<decltype(from), decltype(to)>(x, scales, y); });
  });
}

void BackwardOn(const BlockedMatrix& x, const BlockedMatrix& dy, const ColumnScales& scales,
                float* d_gamma, float* d_beta, BlockedMatrix* dx) {
  WithTypeOf(x.precision(), [&](auto type) HWY_ATTR {
    WithTypeOf(dy.precision(), [&](auto d) HWY_ATTR {
      Backward<decltype(type), decltype(d)>(x, dy, scales, d_gamma, d_beta, dx);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(MomentsOn);
HWY_EXPORT(NormalizeOn);
HWY_EXPORT(BackwardOn);

void ColumnMoments(const BlockedMatrix& x, double* means, double* squares) {
  HWY_DYNAMIC_DISPATCH(MomentsOn)(x, means, squares);
}

void NormalizeColumns(const BlockedMatrix& x, const ColumnScales& scales, BlockedMatrix* y) {
  CHECK(x.rows() == y->rows() && x.columns() == y->columns());
  HWY_DYNAMIC_DISPATCH(NormalizeOn)(x, scales, y);
}

void NormalizeColumnsBackward(const BlockedMatrix& x, const BlockedMatrix& dy,
                              const ColumnScales& scales, float* d_gamma, float* d_beta,
                              BlockedMatrix* dx) {
  CHECK(x.rows() == dy.rows() && x.columns() == dy.columns());
  CHECK(dx == nullptr || (dx->rows() == dy.rows() && dx->columns() == dy.columns() &&
                          dx->precision() == dy.precision()));
  HWY_DYNAMIC_DISPATCH(BackwardOn)(x, dy, scales, d_gamma, d_beta, dx);
}

}  // namespace renzan
#endif
