// Stochastic rounding of float32 to the values of a 16-bit type: to one of the two neighbours, up
// with a probability proportional to the distance from the lower one, so that updates smaller than
// half a unit are not lost but arrive on average. Include it after <hwy/highway.h>, in a .cc file
// that foreach_target.h includes again for each target.

#if defined(RENZAN_EMBEDDING_STOCHASTIC_ROUNDING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_EMBEDDING_STOCHASTIC_ROUNDING_INL_H_
#undef RENZAN_EMBEDDING_STOCHASTIC_ROUNDING_INL_H_
#else
#define RENZAN_EMBEDDING_STOCHASTIC_ROUNDING_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "renzan/tensor/float_codec-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 random bits for each column of one row, from `column` on: a Weyl sequence from the row's own
// word, which Philox draws, mixed by the finaliser of MurmurHash3 (Appleby). Philox alone, with its
// twenty multiplications for four words, would take longer than the update.
template <class U>
HWY_INLINE hn::Vec<U> RandomOfColumns(U u, uint32_t row_word, size_t column) {
  const auto columns =
      hn::Add(hn::Iota(u, 0), hn::Set(u, static_cast<uint32_t>(column)));  // a constant ramp
  auto x = hn::Add(hn::Set(u, row_word), hn::Mul(columns, hn::Set(u, 0x9E3779B9u)));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(u, 0x85EBCA6Bu));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(u, 0xC2B2AE35u));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// The 16 bits of the rounded values, in the lower halves of the lanes. A finite value beyond the
// type's range becomes the largest finite one, as in float_codec.h; what is not finite becomes NaN.
template <FloatType kType, class VBits>
HWY_INLINE VBits RoundStochastically(VBits v, VBits random) {
  constexpr bool kIsHalf = kType == FloatType::kFloat16;
  const hn::DFromV<VBits> u;
  const VBits magnitude = hn::And(v, hn::Set(u, 0x7FFFFFFFu));
  VBits rounded;
  if constexpr (kIsHalf) {
    const hn::RebindToSigned<hn::DFromV<VBits>> i;
    const hn::RebindToFloat<hn::DFromV<VBits>> f;
    const VBits random13 = hn::ShiftRight<19>(random);
    // The exponent's bias changes from 127 to 15.
    const VBits rebiased = hn::Add(magnitude, hn::Set(u, 0u - (112u << 23)));
    const VBits normal = hn::ShiftRight<13>(hn::Add(rebiased, random13));
    // Subnormal, below 2^-14: in units of 2^-24, with 13 bits behind the point.
    const VBits limit = hn::Set(u, 113u << 23);
    const auto small = hn::BitCast(f, hn::Min(magnitude, limit));
    const VBits units = hn::BitCast(u, hn::ConvertTo(i, hn::Mul(small, hn::Set(f, 0x1.0p37f))));
    const VBits subnormal = hn::ShiftRight<13>(hn::Add(units, random13));
    rounded = hn::IfThenElse(Less(magnitude, limit), subnormal, normal);
  } else {
    rounded = hn::ShiftRight<16>(hn::Add(magnitude, hn::ShiftRight<16>(random)));
  }
  rounded = hn::Min(rounded, hn::Set(u, kIsHalf ? 0x7BFFu : 0x7F7Fu));
  rounded = hn::IfThenElse(Less(magnitude, hn::Set(u, kInfinityBits)), rounded,
                           hn::Set(u, kIsHalf ? 0x7E00u : 0x7FC0u));
  return hn::Or(rounded, hn::And(hn::ShiftRight<16>(v), hn::Set(u, 0x8000u)));
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
