#include "renzan/optim/optimizer_steps.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/optim/optimizer_steps.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Sgd(float lr, const float* g, size_t n, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), hn::Mul(hn::Set(d, lr), hn::LoadU(d, g + i))), d,
               w + i);
  });
}

void Adagrad(float lr, float epsilon, const float* g, size_t n, float* s, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, g + i);
    const auto sum = hn::Add(hn::LoadU(d, s + i), hn::Mul(grad, grad));
    hn::StoreU(sum, d, s + i);
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, lr), grad), hn::Add(hn::Sqrt(sum), hn::Set(d, epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), step), d, w + i);
  });
}

// Plain loops of 16: the compiler keeps the order and vectorises within a level of the tree.
HWY_INLINE float SumOfSquares(const float* g, size_t n) {
  float total = 0.0f;
  for (size_t begin = 0; begin < n; begin += 16) {
    float part[16];
    for (size_t i = 0; i < 16; ++i) {
      const float x = begin + i < n ? g[begin + i] : 0.0f;
      part[i] = x * x;
    }
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) part[i] += part[i + half];
    total += part[0];
  }
  return total;
}

void RowWiseAdagrad(float lr, float epsilon, const float* g, size_t n, float* s, float* w) {
  *s += SumOfSquares(g, n) / static_cast<float>(n);
  Sgd(lr / (std::sqrt(*s) + epsilon), g, n, w);
}

void Adam(const AdamFactors& f, const float* g, size_t n, float* m, float* v, float* w) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, g + i);
    const auto mean = hn::Add(hn::Mul(hn::Set(d, f.beta1), hn::LoadU(d, m + i)),
                              hn::Mul(hn::Set(d, f.rest1), grad));
    const auto square = hn::Add(hn::Mul(hn::Set(d, f.beta2), hn::LoadU(d, v + i)),
                                hn::Mul(hn::Set(d, f.rest2), hn::Mul(grad, grad)));
    hn::StoreU(mean, d, m + i);
    hn::StoreU(square, d, v + i);
    const auto denominator =
        hn::Add(hn::Sqrt(hn::Mul(square, hn::Set(d, f.correct2))), hn::Set(d, f.epsilon));
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, f.lr), hn::Mul(mean, hn::Set(d, f.correct1))), denominator);
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), step), d, w + i);
  });
}

void Scale(float factor, size_t n, float* x) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

void AddScaled(float factor, const float* x, size_t n, float* y) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + i))), d,
               y + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Sgd);
HWY_EXPORT(Adagrad);
HWY_EXPORT(RowWiseAdagrad);
HWY_EXPORT(Adam);
HWY_EXPORT(Scale);
HWY_EXPORT(AddScaled);

AdamFactors::AdamFactors(double learning_rate, double eps, double b1, double b2, int64_t step)
    : lr(static_cast<float>(learning_rate)),
      epsilon(static_cast<float>(eps)),
      beta1(static_cast<float>(b1)),
      rest1(static_cast<float>(1 - b1)),
      beta2(static_cast<float>(b2)),
      rest2(static_cast<float>(1 - b2)),
      correct1(static_cast<float>(1.0 / (1.0 - std::pow(b1, static_cast<double>(step + 1))))),
      correct2(static_cast<float>(1.0 / (1.0 - std::pow(b2, static_cast<double>(step + 1))))) {}

void SgdStep(float lr, const float* g, int64_t n, float* w) {
  HWY_DYNAMIC_DISPATCH(Sgd)(lr, g, static_cast<size_t>(n), w);
}
void AdagradStep(float lr, float epsilon, const float* g, int64_t n, float* s, float* w) {
  HWY_DYNAMIC_DISPATCH(Adagrad)(lr, epsilon, g, static_cast<size_t>(n), s, w);
}
void RowWiseAdagradStep(float lr, float epsilon, const float* g, int64_t n, float* s, float* w) {
  HWY_DYNAMIC_DISPATCH(RowWiseAdagrad)(lr, epsilon, g, static_cast<size_t>(n), s, w);
}
void AdamStep(const AdamFactors& factors, const float* g, int64_t n, float* m, float* v, float* w) {
  HWY_DYNAMIC_DISPATCH(Adam)(factors, g, static_cast<size_t>(n), m, v, w);
}
void ScaleValues(float factor, int64_t n, float* x) {
  HWY_DYNAMIC_DISPATCH(Scale)(factor, static_cast<size_t>(n), x);
}
void AddScaled(float factor, const float* x, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, x, static_cast<size_t>(n), y);
}

}  // namespace renzan
#endif
