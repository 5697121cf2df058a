#include "renzan/nn/elementwise.h"

#include <algorithm>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/tensor/simd_for_each-inl.h"
#include "renzan/tensor/stored_values-inl.h"

// Every operation is rounded to float32 by itself, so every target gives the same bits.

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = result(d, load) for all elements; load(m) loads those of matrix m.
template <class Type, class Result>
HWY_INLINE void Elements(const Result& result, BlockedMatrix* y) {
  using Value = typename Type::Value;
  constexpr size_t kPerLane = sizeof(float) / sizeof(Value);
  ForEach(y->size() * kPerLane, [&](auto d, size_t i) HWY_ATTR {
    const auto load = [&](const BlockedMatrix& m) HWY_ATTR {
      return Type::Load(d, reinterpret_cast<const Value*>(m.data()) + i);
    };
    Type::Store(result(d, load), d, reinterpret_cast<Value*>(y->data()) + i);
  });
}

template <class Result>
HWY_INLINE void Elements(const Result& result, BlockedMatrix* y) {
  if (y->precision() == Precision::kFloat32) {
    Elements<Float32>(result, y);
  } else {
    Elements<BFloat16>(result, y);
  }
}

void ReluOn(const BlockedMatrix& z, BlockedMatrix* y) {
  Elements([&](auto d, auto load)
               HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(load(z), hn::Zero(d)), load(z)); },
           y);
}

void ReluBackwardOn(const BlockedMatrix& y, BlockedMatrix* dy) {
  Elements([&](auto d, auto load)
               HWY_ATTR { return hn::IfThenElseZero(hn::Gt(load(y), hn::Zero(d)), load(*dy)); },
           dy);
}

void MultiplyOn(const BlockedMatrix& a, const BlockedMatrix& b, BlockedMatrix* y) {
  Elements([&](auto, auto load) HWY_ATTR { return hn::Mul(load(a), load(b)); }, y);
}

void MultiplyAddOn(const BlockedMatrix& a, const BlockedMatrix& b, const BlockedMatrix& c,
                   BlockedMatrix* y) {
  Elements([&](auto, auto load) HWY_ATTR { return hn::Add(hn::Mul(load(a), load(b)), load(c)); },
           y);
}

void AddOn(const BlockedMatrix& a, BlockedMatrix* y) {
  Elements([&](auto, auto load) HWY_ATTR { return hn::Add(load(*y), load(a)); }, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {
namespace {

void CheckSameShape(const BlockedMatrix& a, const BlockedMatrix& b) {
  CHECK(a.rows() == b.rows() && a.columns() == b.columns() && a.precision() == b.precision());
}

}  // namespace

HWY_EXPORT(ReluOn);
HWY_EXPORT(ReluBackwardOn);
HWY_EXPORT(MultiplyOn);
HWY_EXPORT(MultiplyAddOn);
HWY_EXPORT(AddOn);

void Relu(const BlockedMatrix& z, BlockedMatrix* y) {
  CheckSameShape(z, *y);
  HWY_DYNAMIC_DISPATCH(ReluOn)(z, y);
}
void ReluBackward(const BlockedMatrix& y, BlockedMatrix* dy) {
  CheckSameShape(y, *dy);
  HWY_DYNAMIC_DISPATCH(ReluBackwardOn)(y, dy);
}
void Multiply(const BlockedMatrix& a, const BlockedMatrix& b, BlockedMatrix* y) {
  CheckSameShape(a, b);
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(MultiplyOn)(a, b, y);
}
void MultiplyAdd(const BlockedMatrix& a, const BlockedMatrix& b, const BlockedMatrix& c,
                 BlockedMatrix* y) {
  CheckSameShape(a, b);
  CheckSameShape(a, c);
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(MultiplyAddOn)(a, b, c, y);
}
void Copy(const BlockedMatrix& a, BlockedMatrix* y) {
  CheckSameShape(a, *y);
  std::copy_n(a.data(), a.size(), y->data());
}
void Add(const BlockedMatrix& a, BlockedMatrix* y) {
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(AddOn)(a, y);
}

void ColumnSums(const BlockedMatrix& a, float* sums) {
  std::fill_n(sums, a.columns(), 0.0f);
  float values[2 * BlockedMatrix::kLanes];
  const int64_t width = a.block_columns();
  for (int64_t first = 0; first < a.columns(); first += width) {
    const int64_t count = std::min(width, a.columns() - first);
    if (a.precision() == Precision::kFloat32) {  // whole lines, whose size is known
      const float* line = a.block(first / width);
      std::fill_n(values, BlockedMatrix::kLanes, 0.0f);
      for (int64_t row = 0; row < a.rows(); ++row, line += BlockedMatrix::kLanes)
        for (int64_t c = 0; c < BlockedMatrix::kLanes; ++c) values[c] += line[c];
      std::copy_n(values, count, sums + first);
      continue;
    }
    for (int64_t row = 0; row < a.rows(); ++row) {
      a.GetRow(row, first, values, count);
      for (int64_t c = 0; c < count; ++c) sums[first + c] += values[c];
    }
  }
}

}  // namespace renzan
#endif
