// Vectors of float32 from and to bfloat16 in memory. Include it after <hwy/highway.h>, in a .cc
// file that foreach_target.h includes again for each target.

#if defined(RENZAN_BASE_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_BASE_BFLOAT16_INL_H_
#undef RENZAN_BASE_BFLOAT16_INL_H_
#else
#define RENZAN_BASE_BFLOAT16_INL_H_
#endif

#include "renzan/tensor/precision.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

// FromBFloat16() of as many values as `d` has lanes.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> LoadBFloat16(D d, const BFloat16Bits* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<uint16_t, D> narrow;
  const auto values = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), values)));
}

// ToBFloat16() of every lane, in the upper half of its bits; the lower one is undefined.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToUnsigned<D>> RoundToUpperHalf(
    D, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> u;
  const auto bits = hn::BitCast(u, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1u));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(u, 0x7FFFu)), odd);
  const auto quiet = hn::Or(bits, hn::Set(u, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(v)), quiet, rounded);
}

// ToBFloat16() of every lane.
template <class D>
HWY_INLINE void StoreBFloat16(hwy::HWY_NAMESPACE::Vec<D> v, D d, BFloat16Bits* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> i;
  const hn::Rebind<uint16_t, D> narrow;
  const auto bits = hn::ShiftRight<16>(RoundToUpperHalf(d, v));
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(i, bits)), narrow, reinterpret_cast<uint16_t*>(p));
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
