// The functions of activation.h on float64 vectors, within a few units of the last place of
// float64, so that a result rounded to float32 hardly ever differs from the exact one. Every step
// is rounded by itself, so all targets give the same bits. Include it after <hwy/highway.h>, in a
// .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_NN_ACTIVATION_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_ACTIVATION_FUNCTIONS_INL_H_
#undef RENZAN_NN_ACTIVATION_FUNCTIONS_INL_H_
#else
#define RENZAN_NN_ACTIVATION_FUNCTIONS_INL_H_
#endif

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of coefficient · x^n, the highest power first. Even and odd powers are summed apart,
// because a processor then works on both at once.
template <class D, size_t kCount>
HWY_INLINE hn::Vec<D> PolynomialOf(D d, hn::Vec<D> x, const double (&coefficients)[kCount]) {
  const auto square = hn::Mul(x, x);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  for (size_t i = 0; i < kCount; ++i) {
    auto& sum = (kCount - 1 - i) % 2 == 0 ? even : odd;
    sum = hn::Add(hn::Mul(sum, square), hn::Set(d, coefficients[i]));
  }
  return hn::Add(hn::Mul(odd, x), even);
}

// e^x for x of at most 0; 0 below −700, where no float32 is. NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> ExpOfNegativeDouble(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> bits;
  // x = n ln 2 + r. Adding 1.5 · 2^52 rounds to a whole number, and leaves it in the lowest bits.
  const auto shift = hn::Set(d, 0x1.8p52);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, 0x1.71547652b82fep0)), shift);
  const auto n = hn::Sub(shifted, shift);
  // ln 2 is the sum of two numbers, the first of few bits, so that its products with n are exact.
  auto r = hn::Sub(x, hn::Mul(n, hn::Set(d, 0x1.62e42feep-1)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, 0x1.a39ef35793c76p-33)));
  // The series of e^r, for |r| up to ln 2 / 2.
  const auto y = PolynomialOf(
      d, r,
      {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
       1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
  const auto exponent = hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 1023u));
  const auto power = hn::BitCast(d, hn::ShiftLeft<52>(exponent));  // 2^n
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -700.0)), hn::Mul(y, power));
}

// e^−|x|
template <class D>
HWY_INLINE hn::Vec<D> ExpOfMinusMagnitude(D d, hn::Vec<D> x) {
  return ExpOfNegativeDouble(d, hn::Neg(hn::Abs(x)));
}

// σ(x), of e = ExpOfMinusMagnitude(x).
template <class D>
HWY_INLINE hn::Vec<D> SigmoidOf(D d, hn::Vec<D> x, hn::Vec<D> e) {
  const auto one = hn::Set(d, 1.0);
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// σ'(x) = σ(x) σ(−x), of the same e.
template <class D>
HWY_INLINE hn::Vec<D> SigmoidSlopeOf(D d, hn::Vec<D> e) {
  const auto one_plus = hn::Add(hn::Set(d, 1.0), e);
  return hn::Div(e, hn::Mul(one_plus, one_plus));
}

// Where (1 − e^−2x) / (1 + e^−2x) would lose digits, the series of tanh.
template <class D>
HWY_INLINE hn::Vec<D> TanhOf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0), magnitude = hn::Abs(x), square = hn::Mul(x, x);
  const auto e = ExpOfNegativeDouble(d, hn::Mul(magnitude, hn::Set(d, -2.0)));
  const auto far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const auto near =
      hn::Mul(x, PolynomialOf(d, square, {62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.02)), near, far);
}

// e^(−x²/2) and Φ(x) of the normal distribution.
template <class D>
struct NormalParts {
  hn::Vec<D> bell, share;
};

// Φ(−u) = e^(−u²/2) h(t) / (u + 6) for u ≥ 0, with t = (u − 6) / (u + 6). h is the series of
// Chebyshev polynomials of degree 23, with an error below 1e-16 (a form of Shepherd and
// Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x", 1981), in powers of t.
template <class D>
HWY_INLINE NormalParts<D> NormalOf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0), six = hn::Set(d, 6.0), most = hn::Set(d, 40.0);
  const auto bell =
      ExpOfNegativeDouble(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5)));  // x² of a float32 is exact
  auto u = hn::Abs(x);
  u = hn::IfThenElse(hn::Gt(u, most), most, u);
  const auto scale = hn::Div(one, hn::Add(u, six));
  const auto t = hn::Mul(hn::Sub(u, six), scale);
  const auto h =
      PolynomialOf(d, t, {-3.403350501945896e-10, -3.6053251110905586e-10, 4.6664643925858215e-09,
                          2.827692671238881e-09,  -4.10380431659102e-08,   6.8475017548762e-09,
                          3.0702367893627545e-07, -4.295192491977758e-07,  -1.7969945618258692e-06,
                          6.796707412831092e-06,  1.0742840107015701e-06,  -6.475225443446431e-05,
                          0.00018136081565295003, 3.287010887352331e-05,   -0.002131605285716135,
                          0.010029820622876658,   -0.03098531549895509,    0.07517191567087725,
                          -0.15268023206503917,   0.2679742458415497,      -0.4139035857755745,
                          0.5689688918147859,     -0.7010090295908656,     0.7773517718933621});
  const auto below = hn::Mul(bell, hn::Mul(h, scale));
  return {bell, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Sub(one, below))};
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
