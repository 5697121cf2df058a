#include "renzan/optim/optimizer_steps.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/optim/optimizer_steps.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/optim/optimizer_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

void SgdIn(float lr, const float* g, size_t n, float* w) { Sgd(lr, g, n, w); }
void AdagradIn(float lr, float epsilon, const float* g, size_t n, float* s, float* w) {
  Adagrad(lr, epsilon, g, n, s, w);
}
void ScaleIn(float factor, size_t n, float* x) { Scale(factor, n, x); }

void AdamIn(const AdamFactors& factors, const float* g, size_t n, float* m, float* v, float* w) {
  Adam(factors, g, n, m, v, w);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SgdIn);
HWY_EXPORT(AdagradIn);
HWY_EXPORT(AdamIn);
HWY_EXPORT(ScaleIn);

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
  HWY_DYNAMIC_DISPATCH(SgdIn)(lr, g, static_cast<size_t>(n), w);
}
void AdagradStep(float lr, float epsilon, const float* g, int64_t n, float* s, float* w) {
  HWY_DYNAMIC_DISPATCH(AdagradIn)(lr, epsilon, g, static_cast<size_t>(n), s, w);
}
void AdamStep(const AdamFactors& factors, const float* g, int64_t n, float* m, float* v, float* w) {
  HWY_DYNAMIC_DISPATCH(AdamIn)(factors, g, static_cast<size_t>(n), m, v, w);
}
void ScaleValues(float factor, int64_t n, float* x) {
  HWY_DYNAMIC_DISPATCH(ScaleIn)(factor, static_cast<size_t>(n), x);
}

}  // namespace renzan
#endif
