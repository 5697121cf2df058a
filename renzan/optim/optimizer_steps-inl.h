// The steps that embedding rows take, and some of them the dense part too (optimizer_steps.h), for
// kernels that Highway compiles once per instruction set. Include it after <hwy/highway.h>, in a
// .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_OPTIM_OPTIMIZER_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_OPTIM_OPTIMIZER_STEPS_INL_H_
#undef RENZAN_OPTIM_OPTIMIZER_STEPS_INL_H_
#else
#define RENZAN_OPTIM_OPTIMIZER_STEPS_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "renzan/optim/optimizer_steps.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One step of some values, given in vectors.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SgdOf(D d, float lr, V g, V& w) {
  w = hn::Sub(w, hn::Mul(hn::Set(d, lr), g));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void AdagradOf(D d, float lr, float epsilon, V g, V& s, V& w) {
  s = hn::Add(s, hn::Mul(g, g));
  const auto step = hn::Div(hn::Mul(hn::Set(d, lr), g), hn::Add(hn::Sqrt(s), hn::Set(d, epsilon)));
  w = hn::Sub(w, step);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void AdamOf(D d, const AdamFactors& f, V g, V& m, V& v, V& w) {
  m = hn::Add(hn::Mul(hn::Set(d, f.beta1), m), hn::Mul(hn::Set(d, f.rest1), g));
  v = hn::Add(hn::Mul(hn::Set(d, f.beta2), v), hn::Mul(hn::Set(d, f.rest2), hn::Mul(g, g)));
  const auto denominator =
      hn::Add(hn::Sqrt(hn::Mul(v, hn::Set(d, f.correct2))), hn::Set(d, f.epsilon));
  const auto step =
      hn::Div(hn::Mul(hn::Set(d, f.lr), hn::Mul(m, hn::Set(d, f.correct1))), denominator);
  w = hn::Sub(w, step);
}

// SGD with momentum: b = μ·b + g; w -= lr·b
template <class D, class V = hn::Vec<D>>
HWY_INLINE void MomentumOf(D d, float lr, float momentum, V g, V& b, V& w) {
  b = hn::Add(hn::Mul(hn::Set(d, momentum), b), g);
  w = hn::Sub(w, hn::Mul(hn::Set(d, lr), b));
}

HWY_INLINE void Sgd(float lr, const float* g, size_t n, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    auto value = hn::LoadU(d, w + i);
    SgdOf(d, lr, hn::LoadU(d, g + i), value);
    hn::StoreU(value, d, w + i);
  });
}

HWY_INLINE void Adagrad(float lr, float epsilon, const float* g, size_t n, float* s, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, s + i), value = hn::LoadU(d, w + i);
    AdagradOf(d, lr, epsilon, hn::LoadU(d, g + i), sum, value);
    hn::StoreU(sum, d, s + i);
    hn::StoreU(value, d, w + i);
  });
}

HWY_INLINE void Adam(const AdamFactors& f, const float* g, size_t n, float* m, float* v, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    auto mean = hn::LoadU(d, m + i), square = hn::LoadU(d, v + i), value = hn::LoadU(d, w + i);
    AdamOf(d, f, hn::LoadU(d, g + i), mean, square, value);
    hn::StoreU(mean, d, m + i);
    hn::StoreU(square, d, v + i);
    hn::StoreU(value, d, w + i);
  });
}

HWY_INLINE void Momentum(float lr, float momentum, const float* g, size_t n, float* b, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, b + i), value = hn::LoadU(d, w + i);
    MomentumOf(d, lr, momentum, hn::LoadU(d, g + i), sum, value);
    hn::StoreU(sum, d, b + i);
    hn::StoreU(value, d, w + i);
  });
}

// FTRL-Proximal (McMahan et al., 2013): σ = (√(s + g²) - √s) / lr; z += g - σ·w; s += g²;
// w = 0 if |z| <= l1, otherwise -(z - sign(z)·l1) / ((β + √s) / lr + l2). So w follows from z and s
// alone; `s` is n in the paper.
HWY_INLINE void Ftrl(const SparseFactors& f, const float* g, size_t n, float* z, float* s,
                     float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, g + i), lr = hn::Set(d, f.lr), l1 = hn::Set(d, f.l1);
    const auto before = hn::LoadU(d, s + i);
    const auto sum = hn::Add(before, hn::Mul(grad, grad));
    const auto root = hn::Sqrt(sum);
    const auto sigma = hn::Div(hn::Sub(root, hn::Sqrt(before)), lr);
    const auto linear =
        hn::Add(hn::LoadU(d, z + i), hn::Sub(grad, hn::Mul(sigma, hn::LoadU(d, w + i))));
    hn::StoreU(sum, d, s + i);
    hn::StoreU(linear, d, z + i);
    const auto strength = hn::Add(hn::Div(hn::Add(hn::Set(d, f.beta), root), lr), hn::Set(d, f.l2));
    const auto step = hn::Div(hn::Sub(hn::CopySign(l1, linear), linear), strength);
    hn::StoreU(hn::IfThenZeroElse(hn::Le(hn::Abs(linear), l1), step), d, w + i);
  });
}

// The sum of all lanes: lanes i and i + n / 2 are added first, then the n / 2 sums likewise.
template <class Tag>
HWY_INLINE float FoldLanes(Tag d, hn::Vec<Tag> v) {
  if constexpr (hn::MaxLanes(Tag()) > 4) {
    const hn::Half<Tag> half;
    return FoldLanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    alignas(16) float lane[4];
    hn::Store(v, d, lane);
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
  }
}

// The sum of 16 squares, by the same tree.
HWY_INLINE float SumOf16Squares(const float* g) {
  const hn::CappedTag<float, 16> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::CappedTag<float, 16>()), kParts = 16 / kLanes;
  hn::Vec<hn::CappedTag<float, 16>> part[kParts];
  for (size_t p = 0; p < kParts; ++p) {
    const auto x = hn::LoadU(d, g + p * kLanes);
    part[p] = hn::Mul(x, x);
  }
  for (size_t half = kParts / 2; half > 0; half /= 2)
    for (size_t p = 0; p < half; ++p) part[p] = hn::Add(part[p], part[p + half]);
  return FoldLanes(d, part[0]);
}

// Σ g² in chunks of 16: each chunk by a balanced tree, the chunks in order.
HWY_INLINE float SumOfSquaresInChunks(const float* g, size_t n) {
  float total = 0.0f;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) total += SumOf16Squares(g + i);
  if (i < n) {
    float rest[16] = {};
    for (size_t j = 0; i + j < n; ++j) rest[j] = g[i + j];
    total += SumOf16Squares(rest);
  }
  return total;
}

// Row-wise Adagrad, with one s for a whole row: s += mean_square, which is (1/dim)·Σ g² of the row;
// w -= (lr / (√s + ε))·g.
HWY_INLINE void RowWiseAdagrad(float lr, float epsilon, const float* g, size_t n, float mean_square,
                               float* s, float* w) {
  *s += mean_square;
  Sgd(lr / (std::sqrt(*s) + epsilon), g, n, w);
}

HWY_INLINE void Scale(float factor, size_t n, float* x) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

// y += factor·x
HWY_INLINE void AddScaled(float factor, const float* x, size_t n, float* y) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + i))), d,
               y + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
