// The 16-bit encodings of float32 (float_codec.h) on vectors. Include it after <hwy/highway.h>, in
// a .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_BASE_FLOAT_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_BASE_FLOAT_CODEC_INL_H_
#undef RENZAN_BASE_FLOAT_CODEC_INL_H_
#else
#define RENZAN_BASE_FLOAT_CODEC_INL_H_
#endif

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kInfinityBits = 0x7F800000;

// Each codec turns float32 bits into 16 bits (in the low half of a lane) and back, with
// integer operations and at most one exact or correctly rounded addition of normal numbers, so that
// neither the instruction set nor a flush-to-zero mode can affect the result.

// Compares values below 2^31 as signed integers, which every target supports.
template <class VBits>
HWY_INLINE auto Less(VBits a, VBits b) {
  const hn::DFromV<VBits> d;
  const hn::RebindToSigned<hn::DFromV<VBits>> w;
  return hn::RebindMask(d, hn::Lt(hn::BitCast(w, a), hn::BitCast(w, b)));
}

// `finite` where the magnitude is finite; otherwise `infinity` or `nan`.
template <class VBits>
HWY_INLINE VBits WithSpecials(VBits magnitude, VBits finite, uint32_t infinity, uint32_t nan) {
  const hn::DFromV<VBits> d;
  const VBits limit = hn::Set(d, kInfinityBits);
  const VBits special =
      hn::IfThenElse(Less(limit, magnitude), hn::Set(d, nan), hn::Set(d, infinity));
  return hn::IfThenElse(Less(magnitude, limit), finite, special);
}

struct Half {
  template <class VBits>
  static HWY_INLINE VBits Encode(VBits v) {
    const hn::DFromV<VBits> d;
    const hn::RebindToFloat<hn::DFromV<VBits>> f;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x477FE000u));  // 65504, the largest
    // Normal: change the exponent's bias from 127 to 15 and round the 13 lost bits to nearest even.
    const VBits odd = hn::And(hn::ShiftRight<13>(finite), hn::Set(d, 1u));
    const VBits normal = hn::ShiftRight<13>(hn::Add(hn::Add(finite, hn::Set(d, 0xC8000FFFu)), odd));
    // Subnormal, below 2^-14: the last bit of 0.5 is 2^-24, so adding 0.5 rounds correctly.
    const VBits half = hn::Set(d, 0x3F000000u);
    const VBits subnormal =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(f, finite), hn::BitCast(f, half))), half);
    VBits result = hn::IfThenElse(Less(finite, hn::Set(d, 113u << 23)), subnormal, normal);
    result = WithSpecials(magnitude, result, 0x7C00, 0x7E00);
    return hn::Or(result, hn::ShiftRight<16>(sign));
  }

  template <class VBits>
  static HWY_INLINE VBits Decode(VBits h) {
    const hn::DFromV<VBits> d;
    const hn::RebindToFloat<hn::DFromV<VBits>> f;
    const VBits sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000u)));
    const VBits magnitude = hn::ShiftLeft<13>(hn::And(h, hn::Set(d, 0x7FFFu)));
    const VBits bias = hn::Set(d, 112u << 23);
    VBits result = hn::Add(magnitude, bias);
    const auto is_finite = Less(magnitude, hn::Set(d, 0x7C00u << 13));
    result = hn::Add(result, hn::IfThenZeroElse(is_finite, bias));
    // Subnormal: m * 2^-24 = (2^-14 + m * 2^-24) - 2^-14, exactly.
    const VBits smallest = hn::Set(d, 113u << 23);
    const VBits subnormal = hn::BitCast(
        d, hn::Sub(hn::BitCast(f, hn::Add(magnitude, smallest)), hn::BitCast(f, smallest)));
    result = hn::IfThenElse(Less(magnitude, hn::Set(d, 0x0400u << 13)), subnormal, result);
    return hn::Or(result, sign);
  }

  // Decode(Encode(v)) with fewer steps.
  template <class VBits>
  static HWY_INLINE VBits Round(VBits v) {
    const hn::DFromV<VBits> d;
    const hn::RebindToFloat<hn::DFromV<VBits>> f;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x477FE000u));
    const VBits odd = hn::And(hn::ShiftRight<13>(finite), hn::Set(d, 1u));
    const VBits normal =
        hn::And(hn::Add(hn::Add(finite, hn::Set(d, 0x0FFFu)), odd), hn::Set(d, 0xFFFFE000u));
    const auto half = hn::Set(f, 0.5f);
    const VBits subnormal = hn::BitCast(d, hn::Sub(hn::Add(hn::BitCast(f, finite), half), half));
    const VBits result = hn::IfThenElse(Less(finite, hn::Set(d, 113u << 23)), subnormal, normal);
    return hn::Or(WithSpecials(magnitude, result, kInfinityBits, 0x7FC00000), sign);
  }
};

struct BFloat {
  template <class VBits>
  static HWY_INLINE VBits Encode(VBits v) {
    return hn::ShiftRight<16>(Round(v));
  }

  template <class VBits>
  static HWY_INLINE VBits Decode(VBits h) {
    return hn::ShiftLeft<16>(h);
  }

  template <class VBits>
  static HWY_INLINE VBits Round(VBits v) {
    const hn::DFromV<VBits> d;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x7F7F0000u));  // the largest
    const VBits odd = hn::And(hn::ShiftRight<16>(finite), hn::Set(d, 1u));
    const VBits result =
        hn::And(hn::Add(hn::Add(finite, hn::Set(d, 0x7FFFu)), odd), hn::Set(d, 0xFFFF0000u));
    return hn::Or(WithSpecials(magnitude, result, kInfinityBits, 0x7FC00000), sign);
  }
};

// `d` is a tag of float32 lanes; a 16-bit value in memory becomes a 32-bit lane.
template <class D>
HWY_INLINE auto LoadEncoded(D, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> narrow;
  return hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(narrow, p));
}

template <class D, class VBits>
HWY_INLINE void StoreEncoded(D, VBits v, uint16_t* p) {
  const hn::Rebind<uint16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<D>(), v)), narrow, p);
}

template <class D>
HWY_INLINE auto LoadBits(D d, const float* p) {
  return hn::BitCast(hn::RebindToUnsigned<D>(), hn::LoadU(d, p));
}

template <class D, class VBits>
HWY_INLINE void StoreBits(D d, VBits v, float* p) {
  hn::StoreU(hn::BitCast(d, v), d, p);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
