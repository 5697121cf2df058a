#include "renzan/nn/activation.h"

#include <algorithm>
#include <numbers>

#include "renzan/base/error.h"
#include "renzan/nn/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/activation.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/activation_functions-inl.h"
#include "renzan/tensor/stored_values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// float32 values, as many as a vector has float64 lanes, and those.
using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;

// 16 columns of a row, of which the last may fill up a block.
constexpr int64_t kChunk = BlockedMatrix::kLanes;

template <class Type>
HWY_INLINE const typename Type::Value* At(const BlockedMatrix& m, int64_t chunk, int64_t row) {
  using Value = typename Type::Value;
  constexpr int64_t kPerBlock = sizeof(float) / sizeof(Value);  // chunks
  const float* line = m.block(chunk / kPerBlock) + row * BlockedMatrix::kLanes;
  return reinterpret_cast<const Value*>(line) + chunk % kPerBlock * kChunk;
}
template <class Type>
HWY_INLINE typename Type::Value* At(BlockedMatrix* m, int64_t chunk, int64_t row) {
  return const_cast<typename Type::Value*>(At<Type>(*m, chunk, row));
}

// Calls body(chunk, row, first column of some in the chunk) for all values.
template <class Body>
HWY_INLINE void ForEachPart(const BlockedMatrix& m, const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  for (int64_t chunk = 0; chunk * kChunk < m.columns(); ++chunk)
    for (int64_t row = 0; row < m.rows(); ++row)
      for (int64_t i = 0; i < kChunk; i += lanes) body(chunk, row, i);
}

// y = result(z, y), in float32, and in float64 what result computes so.
template <class Type, class Result>
HWY_INLINE void ForEachValue(const BlockedMatrix& z, BlockedMatrix* y, const Result& result) {
  const Floats f;
  ForEachPart(z, [&](int64_t chunk, int64_t row, int64_t i) HWY_ATTR {
    auto* const to = At<Type>(y, chunk, row) + i;
    Type::Store(result(Type::Load(f, At<Type>(z, chunk, row) + i), Type::Load(f, to)), f, to);
  });
}

// The columns that fill up the last block stay zero whatever the function is of 0.
template <class Type>
void ZeroFillers(BlockedMatrix* y) {
  const int64_t rest = y->columns() % kChunk;
  if (rest == 0) return;
  for (int64_t row = 0; row < y->rows(); ++row) {
    auto* const chunk = At<Type>(y, y->columns() / kChunk, row);
    std::fill(chunk + rest, chunk + kChunk, typename Type::Value{});
  }
}

HWY_INLINE hn::Vec<Floats> Rounded(hn::Vec<Doubles> v) { return hn::DemoteTo(Floats(), v); }
HWY_INLINE hn::Vec<Doubles> Wide(hn::Vec<Floats> v) { return hn::PromoteTo(Doubles(), v); }

// function(v), rounded; NaN is v itself, because which of two operands' NaN a sum passes on depends
// on the target.
template <class Function>
HWY_INLINE hn::Vec<Floats> InDoubles(hn::Vec<Floats> v, const Function& function) {
  return hn::IfThenElse(hn::IsNaN(v), v, Rounded(function(Wide(v))));
}

HWY_INLINE hn::Vec<Floats> SigmoidOfFloats(hn::Vec<Floats> v) {
  const auto x = Wide(v);
  return Rounded(SigmoidOf(Doubles(), x, ExpOfMinusMagnitude(Doubles(), x)));
}

template <class Type>
void ActivateAs(Activation activation, const BlockedMatrix& z, BlockedMatrix* y) {
  const Doubles d;
  const auto apply = [&](const auto& function) HWY_ATTR {
    ForEachValue<Type>(z, y, [&](auto v, auto) HWY_ATTR { return InDoubles(v, function); });
  };
  switch (activation) {
    case Activation::kSilu:
      return apply([&](auto x)
                       HWY_ATTR { return hn::Mul(x, SigmoidOf(d, x, ExpOfMinusMagnitude(d, x))); });
    case Activation::kGelu:
      return apply([&](auto x) HWY_ATTR { return hn::Mul(x, NormalOf(d, x).share); });
    case Activation::kTanh:
      return apply([&](auto x) HWY_ATTR { return TanhOf(d, x); });
    case Activation::kSigmoid:
      apply([&](auto x) HWY_ATTR { return SigmoidOf(d, x, ExpOfMinusMagnitude(d, x)); });
      return ZeroFillers<Type>(y);
    case Activation::kRelu:
      return;
  }
}

template <class Type>
void ActivateBackwardAs(Activation activation, const BlockedMatrix& z, BlockedMatrix* gradient) {
  const Doubles d;
  const auto apply = [&](const auto& slope) HWY_ATTR {
    ForEachValue<Type>(z, gradient,
                       [&](auto v, auto g) HWY_ATTR { return hn::Mul(g, InDoubles(v, slope)); });
  };
  switch (activation) {
    case Activation::kSilu:
      return apply([&](auto x) HWY_ATTR {
        const auto e = ExpOfMinusMagnitude(d, x);
        return hn::Add(SigmoidOf(d, x, e), hn::Mul(x, SigmoidSlopeOf(d, e)));
      });
    case Activation::kGelu:
      return apply([&](auto x) HWY_ATTR {
        constexpr double kDensityAt0 = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
        const auto normal = NormalOf(d, x);
        return hn::Add(normal.share, hn::Mul(hn::Mul(x, hn::Set(d, kDensityAt0)), normal.bell));
      });
    case Activation::kTanh:  // 1 − tanh² x = 4 σ'(2x)
      return apply([&](auto x) HWY_ATTR {
        const auto e = ExpOfMinusMagnitude(d, hn::Add(x, x));
        return hn::Mul(hn::Set(d, 4.0), SigmoidSlopeOf(d, e));
      });
    case Activation::kSigmoid:
      return apply([&](auto x) HWY_ATTR { return SigmoidSlopeOf(d, ExpOfMinusMagnitude(d, x)); });
    case Activation::kRelu:
      return;
  }
}

void ActivateOn(Activation activation, const BlockedMatrix& z, BlockedMatrix* y) {
  WithTypeOf(z.precision(),
             [&](auto type) HWY_ATTR { ActivateAs<decltype(type)>(activation, z, y); });
}

void ActivateBackwardOn(Activation activation, const BlockedMatrix& z, BlockedMatrix* d) {
  WithTypeOf(z.precision(),
             [&](auto type) HWY_ATTR { ActivateBackwardAs<decltype(type)>(activation, z, d); });
}

// The slopes of columns, and zeros for those that fill up the last chunk.
class Slopes {
 public:
  Slopes(const float* slopes, int64_t columns) : slopes_(slopes), columns_(columns) {}
  HWY_INLINE hn::Vec<Floats> Load(int64_t chunk, int64_t i) {
    if (chunk != chunk_) {
      const int64_t first = chunk * kChunk, count = std::min(kChunk, columns_ - first);
      std::fill(std::copy_n(slopes_ + first, count, of_chunk_), of_chunk_ + kChunk, 0.0f);
      chunk_ = chunk;
    }
    return hn::LoadU(Floats(), of_chunk_ + i);
  }

 private:
  const float* slopes_;
  int64_t columns_, chunk_ = -1;
  float of_chunk_[kChunk];
};

template <class Type>
void PreluAs(const BlockedMatrix& z, const float* slopes, BlockedMatrix* y) {
  const Floats f;
  Slopes of(slopes, z.columns());
  ForEachPart(z, [&](int64_t chunk, int64_t row, int64_t i) HWY_ATTR {
    const auto x = Type::Load(f, At<Type>(z, chunk, row) + i);
    const auto below = hn::Mul(of.Load(chunk, i), x);
    Type::Store(hn::IfThenElse(hn::Gt(x, hn::Zero(f)), x, below), f, At<Type>(y, chunk, row) + i);
  });
}

template <class Type>
void PreluBackwardAs(const BlockedMatrix& z, const float* slopes, BlockedMatrix* d,
                     BlockedMatrix* d_slopes) {
  const Floats f;
  Slopes of(slopes, z.columns());
  ForEachPart(z, [&](int64_t chunk, int64_t row, int64_t i) HWY_ATTR {
    auto* const gradient = At<Type>(d, chunk, row) + i;
    const auto x = Type::Load(f, At<Type>(z, chunk, row) + i), dy = Type::Load(f, gradient);
    const auto passes = hn::Gt(x, hn::Zero(f));
    Float32::Store(hn::IfThenZeroElse(passes, hn::Mul(x, dy)), f,
                   At<Float32>(d_slopes, chunk, row) + i);
    Type::Store(hn::IfThenElse(passes, dy, hn::Mul(of.Load(chunk, i), dy)), f, gradient);
  });
}

template <class Type>
void DiceAs(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
            BlockedMatrix* y) {
  const Floats f;
  const auto one = hn::Set(f, 1.0f);
  Slopes of(slopes, z.columns());
  ForEachPart(z, [&](int64_t chunk, int64_t row, int64_t i) HWY_ATTR {
    const auto share = SigmoidOfFloats(Float32::Load(f, At<Float32>(normalized, chunk, row) + i));
    const auto factor = hn::Add(share, hn::Mul(of.Load(chunk, i), hn::Sub(one, share)));
    Type::Store(hn::Mul(Type::Load(f, At<Type>(z, chunk, row) + i), factor), f,
                At<Type>(y, chunk, row) + i);
  });
}

template <class Type>
void DiceBackwardAs(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
                    BlockedMatrix* d, BlockedMatrix* d_normalized, BlockedMatrix* d_slopes) {
  const Floats f;
  const auto one = hn::Set(f, 1.0f);
  Slopes of(slopes, z.columns());
  ForEachPart(z, [&](int64_t chunk, int64_t row, int64_t i) HWY_ATTR {
    auto* const gradient = At<Type>(d, chunk, row) + i;
    const auto share = SigmoidOfFloats(Float32::Load(f, At<Float32>(normalized, chunk, row) + i));
    const auto rest = hn::Sub(one, share), slope = of.Load(chunk, i);
    const auto dy = Type::Load(f, gradient);
    const auto product = hn::Mul(dy, Type::Load(f, At<Type>(z, chunk, row) + i));
    Type::Store(hn::Mul(dy, hn::Add(share, hn::Mul(slope, rest))), f, gradient);
    Float32::Store(hn::Mul(product, hn::Mul(hn::Sub(one, slope), hn::Mul(share, rest))), f,
                   At<Float32>(d_normalized, chunk, row) + i);
    Float32::Store(hn::Mul(product, rest), f, At<Float32>(d_slopes, chunk, row) + i);
  });
}

void PreluOn(const BlockedMatrix& z, const float* slopes, BlockedMatrix* y) {
  WithTypeOf(z.precision(), [&](auto type) HWY_ATTR { PreluAs<decltype(type)>(z, slopes, y); });
}

void PreluBackwardOn(const BlockedMatrix& z, const float* slopes, BlockedMatrix* d,
                     BlockedMatrix* d_slopes) {
  WithTypeOf(z.precision(),
             [&](auto type) HWY_ATTR { PreluBackwardAs<decltype(type)>(z, slopes, d, d_slopes); });
}

void DiceOn(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
            BlockedMatrix* y) {
  WithTypeOf(z.precision(),
             [&](auto type) HWY_ATTR { DiceAs<decltype(type)>(z, normalized, slopes, y); });
}

void DiceBackwardOn(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
                    BlockedMatrix* d, BlockedMatrix* d_normalized, BlockedMatrix* d_slopes) {
  WithTypeOf(z.precision(), [&](auto type) HWY_ATTR {
    DiceBackwardAs<decltype(type)>(z, normalized, slopes, d, d_normalized, d_slopes);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {
namespace {

void CheckAlike(const BlockedMatrix& a, const BlockedMatrix& b) {
  CHECK(a.rows() == b.rows() && a.columns() == b.columns() && a.precision() == b.precision());
}

// Of what has the precision of sums.
void CheckIsFloat32(const BlockedMatrix& z, const BlockedMatrix& m) {
  CHECK(m.rows() == z.rows() && m.columns() == z.columns());
  CHECK(m.precision() == Precision::kFloat32);
}

}  // namespace

HWY_EXPORT(ActivateOn);
HWY_EXPORT(ActivateBackwardOn);
HWY_EXPORT(PreluOn);
HWY_EXPORT(PreluBackwardOn);
HWY_EXPORT(DiceOn);
HWY_EXPORT(DiceBackwardOn);

const std::vector<std::string>& ActivationNames() {
  static const std::vector<std::string> names = {"relu", "silu", "gelu", "tanh", "sigmoid"};
  return names;
}

Activation ActivationNamed(const std::string& name) {
  const auto at = std::find(ActivationNames().begin(), ActivationNames().end(), name);
  CHECK(at != ActivationNames().end());
  return static_cast<Activation>(at - ActivationNames().begin());
}

void Activate(Activation activation, const BlockedMatrix& z, BlockedMatrix* y) {
  if (activation == Activation::kRelu) return Relu(z, y);
  CheckAlike(z, *y);
  HWY_DYNAMIC_DISPATCH(ActivateOn)(activation, z, y);
}

void ActivateBackward(Activation activation, const BlockedMatrix& z, BlockedMatrix* d) {
  if (activation == Activation::kRelu) return ReluBackward(z, d);
  CheckAlike(z, *d);
  HWY_DYNAMIC_DISPATCH(ActivateBackwardOn)(activation, z, d);
}

void Prelu(const BlockedMatrix& z, const float* slopes, BlockedMatrix* y) {
  CheckAlike(z, *y);
  HWY_DYNAMIC_DISPATCH(PreluOn)(z, slopes, y);
}

void PreluBackward(const BlockedMatrix& z, const float* slopes, BlockedMatrix* d,
                   BlockedMatrix* d_slopes) {
  CheckAlike(z, *d);
  CheckIsFloat32(z, *d_slopes);
  HWY_DYNAMIC_DISPATCH(PreluBackwardOn)(z, slopes, d, d_slopes);
}

void Dice(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
          BlockedMatrix* y) {
  CheckAlike(z, *y);
  CheckIsFloat32(z, normalized);
  HWY_DYNAMIC_DISPATCH(DiceOn)(z, normalized, slopes, y);
}

void DiceBackward(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
                  BlockedMatrix* d, BlockedMatrix* d_normalized, BlockedMatrix* d_slopes) {
  CheckAlike(z, *d);
  for (const BlockedMatrix* m : {&normalized, static_cast<const BlockedMatrix*>(d_normalized),
                                 static_cast<const BlockedMatrix*>(d_slopes)})
    CheckIsFloat32(z, *m);
  HWY_DYNAMIC_DISPATCH(DiceBackwardOn)(z, normalized, slopes, d, d_normalized, d_slopes);
}

}  // namespace renzan
#endif
