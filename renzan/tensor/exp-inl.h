// The exponential and logistic functions of float32 vectors. Every step is rounded by itself, so
// all targets give the same bits. Include it after <hwy/highway.h>, in a .cc file that
// foreach_target.h includes again for each target.

#if defined(RENZAN_TENSOR_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_TENSOR_EXP_INL_H_
#undef RENZAN_TENSOR_EXP_INL_H_
#else
#define RENZAN_TENSOR_EXP_INL_H_
#endif

#include <initializer_list>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// e^x for x of at most 0, within 2 units of the last place; 0 where the result would be denormal.
// NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> ExpOfNegative(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> integers;
  const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  // x = n ln 2 + r, where ln 2 is the sum of two numbers, the first of few bits, so that its
  // products with n are exact.
  const auto n = hn::Round(hn::Mul(x, set(1.44269504f)));
  auto r = hn::Sub(x, hn::Mul(n, set(0.693359375f)));
  r = hn::Sub(r, hn::Mul(n, set(-2.12194440e-4f)));
  // The series of e^r, for |r| up to ln 2 / 2.
  auto y = set(1.0f / 5040);
  for (const float each : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    y = hn::Add(hn::Mul(y, r), set(each));
  const auto power =
      hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127)));  // 2^n
  return hn::IfThenZeroElse(hn::Lt(x, set(-87.3f)), hn::Mul(y, hn::BitCast(d, power)));
}

// 1 / (1 + e^−x)
template <class D>
HWY_INLINE hn::Vec<D> Sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f), e = ExpOfNegative(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
