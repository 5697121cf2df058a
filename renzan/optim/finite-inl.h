// The check for NaN and infinity, for kernels that Highway compiles once per instruction set.
// Include it after <hwy/highway.h>, in a .cc file that foreach_target.h includes again for each
// target.

#if defined(RENZAN_OPTIM_FINITE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_OPTIM_FINITE_INL_H_
#undef RENZAN_OPTIM_FINITE_INL_H_
#else
#define RENZAN_OPTIM_FINITE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

HWY_INLINE bool AllFinite(const float* values, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  // Adding one to an exponent of all ones carries into the sign bit. Integers, because they do not
  // depend on floating-point modes.
  const hn::ScalableTag<uint32_t> wide;
  auto carries = hn::Zero(wide);
  uint32_t carries_of_rest = 0;
  ForEach(n, [&](auto tag, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(tag)> u;
    const auto bits = hn::BitCast(u, hn::LoadU(tag, values + i));
    const auto sum = hn::Add(hn::And(bits, hn::Set(u, 0x7FFFFFFFu)), hn::Set(u, 0x00800000u));
    if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<float>>) {
      carries = hn::Or(carries, sum);
    } else {
      carries_of_rest |= hn::GetLane(sum);
    }
  });
  const auto sign = hn::Set(wide, 0x80000000u);
  return carries_of_rest < 0x80000000u &&
         hn::AllFalse(wide, hn::Ne(hn::And(carries, sign), hn::Zero(wide)));
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
