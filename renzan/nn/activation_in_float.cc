#include "renzan/nn/activation_in_float.h"

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/activation_in_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/tensor/exp-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"
#include "renzan/tensor/stored_values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = result(d, z, y) for all elements.
template <class Type, class Result>
HWY_INLINE void EachPair(const Result& result, const BlockedMatrix& z, BlockedMatrix* y) {
  using Value = typename Type::Value;
  constexpr size_t kPerLane = sizeof(float) / sizeof(Value);
  const auto* const from = reinterpret_cast<const Value*>(z.data());
  auto* const to = reinterpret_cast<Value*>(y->data());
  ForEach(y->size() * kPerLane, [&](auto d, size_t i) HWY_ATTR {
    Type::Store(result(d, Type::Load(d, from + i), Type::Load(d, to + i)), d, to + i);
  });
}

template <class Result>
HWY_INLINE void EachPair(const Result& result, const BlockedMatrix& z, BlockedMatrix* y) {
  if (y->precision() == Precision::kFloat32) {
    EachPair<Float32>(result, z, y);
  } else {
    EachPair<BFloat16>(result, z, y);
  }
}

void SiluInFloat(const BlockedMatrix& z, BlockedMatrix* y) {
  EachPair([&](auto d, auto x, auto) HWY_ATTR { return hn::Mul(x, Sigmoid(d, x)); }, z, y);
}

void SigmoidInFloat(const BlockedMatrix& z, BlockedMatrix* y) {
  EachPair([&](auto d, auto x, auto) HWY_ATTR { return Sigmoid(d, x); }, z, y);
}

void SiluInFloatBackward(const BlockedMatrix& z, BlockedMatrix* dy) {
  EachPair(
      [&](auto d, auto x, auto gradient) HWY_ATTR {
        const auto one = hn::Set(d, 1.0f), share = Sigmoid(d, x);
        const auto inner = hn::Add(one, hn::Mul(x, hn::Sub(one, share)));
        return hn::Mul(gradient, hn::Mul(share, inner));  // σ (1 + z (1 − σ))
      },
      z, dy);
}

void SigmoidInFloatBackward(const BlockedMatrix& z, BlockedMatrix* dy) {
  EachPair(
      [&](auto d, auto x, auto gradient) HWY_ATTR {
        const auto share = Sigmoid(d, x);
        return hn::Mul(gradient, hn::Mul(share, hn::Sub(hn::Set(d, 1.0f), share)));
      },
      z, dy);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SiluInFloat);
HWY_EXPORT(SigmoidInFloat);
HWY_EXPORT(SiluInFloatBackward);
HWY_EXPORT(SigmoidInFloatBackward);

namespace {

void CheckPair(const BlockedMatrix& z, const BlockedMatrix& y) {
  CHECK(z.rows() == y.rows() && z.columns() == y.columns() && z.precision() == y.precision());
}

// Sigmoid(0) is not 0, but the columns that fill up a block must be.
void ZeroRestOfBlock(BlockedMatrix* y) {
  constexpr int64_t kMost = 2 * BlockedMatrix::kLanes;
  constexpr float zeros[kMost] = {};
  const int64_t rest = y->num_blocks() * y->block_columns() - y->columns();
  for (int64_t row = 0; rest > 0 && row < y->rows(); ++row)
    y->SetRow(row, y->columns(), zeros, rest);
}

}  // namespace

void ActivateInFloat(Activation activation, const BlockedMatrix& z, BlockedMatrix* y) {
  CheckPair(z, *y);
  if (activation == Activation::kSilu) return HWY_DYNAMIC_DISPATCH(SiluInFloat)(z, y);
  if (activation != Activation::kSigmoid) return Activate(activation, z, y);
  HWY_DYNAMIC_DISPATCH(SigmoidInFloat)(z, y);
  ZeroRestOfBlock(y);
}

void ActivateInFloatBackward(Activation activation, const BlockedMatrix& z, BlockedMatrix* d) {
  CheckPair(z, *d);
  if (activation == Activation::kSilu) return HWY_DYNAMIC_DISPATCH(SiluInFloatBackward)(z, d);
  if (activation == Activation::kSigmoid) return HWY_DYNAMIC_DISPATCH(SigmoidInFloatBackward)(z, d);
  ActivateBackward(activation, z, d);
}

}  // namespace renzan
#endif
