#include "renzan/comm/codec.h"

#include <cstdint>
#include <cstring>

#include "renzan/base/error.h"

// SSSE3 is not worth a separate target.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/comm/codec.cc"
#include <hwy/foreach_target.h>  // includes this file once per instruction set
#include <hwy/highway.h>

#include "renzan/base/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kInfinity = 0x7F800000;

// Each codec turns float32 bits into 16 wire bits (in the low half of a lane) and back, with
// integer operations and at most one exact or correctly rounded addition of normal numbers, so that
// neither the instruction set nor a flush-to-zero mode can affect the result.

// Compares values below 2^31 as signed integers, which every target supports.
template <class VBits>
auto Less(VBits a, VBits b) {
  const hn::DFromV<VBits> d;
  const hn::RebindToSigned<hn::DFromV<VBits>> w;
  return hn::RebindMask(d, hn::Lt(hn::BitCast(w, a), hn::BitCast(w, b)));
}

// `finite` where the magnitude is finite, otherwise `infinity` or `nan`.
template <class VBits>
VBits WithSpecials(VBits magnitude, VBits finite, uint32_t infinity, uint32_t nan) {
  const hn::DFromV<VBits> d;
  const VBits limit = hn::Set(d, kInfinity);
  const VBits special =
      hn::IfThenElse(Less(limit, magnitude), hn::Set(d, nan), hn::Set(d, infinity));
  return hn::IfThenElse(Less(magnitude, limit), finite, special);
}

struct Half {
  template <class VBits>
  static VBits Encode(VBits v) {
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
  static VBits Decode(VBits h) {
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
  static VBits Round(VBits v) {
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
    return hn::Or(WithSpecials(magnitude, result, kInfinity, 0x7FC00000), sign);
  }
};

struct BFloat {
  template <class VBits>
  static VBits Encode(VBits v) {
    return hn::ShiftRight<16>(Round(v));
  }

  template <class VBits>
  static VBits Decode(VBits h) {
    return hn::ShiftLeft<16>(h);
  }

  template <class VBits>
  static VBits Round(VBits v) {
    const hn::DFromV<VBits> d;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x7F7F0000u));  // the largest
    const VBits odd = hn::And(hn::ShiftRight<16>(finite), hn::Set(d, 1u));
    const VBits result =
        hn::And(hn::Add(hn::Add(finite, hn::Set(d, 0x7FFFu)), odd), hn::Set(d, 0xFFFF0000u));
    return hn::Or(WithSpecials(magnitude, result, kInfinity, 0x7FC00000), sign);
  }
};

// `d` is a tag of float32 lanes; a 16-bit value on the wire becomes a 32-bit lane.
template <class D>
auto LoadWire(D, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> narrow;
  return hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(narrow, p));
}

template <class D, class VBits>
void StoreWire(D, VBits v, uint16_t* p) {
  const hn::Rebind<uint16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<D>(), v)), narrow, p);
}

template <class D>
auto LoadBits(D d, const float* p) {
  return hn::BitCast(hn::RebindToUnsigned<D>(), hn::LoadU(d, p));
}

template <class D, class VBits>
void StoreBits(D d, VBits v, float* p) {
  hn::StoreU(hn::BitCast(d, v), d, p);
}

template <class Codec>
void EncodeAll(const float* in, uint16_t* out, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreWire(d, Codec::Encode(LoadBits(d, in + i)), out + i); });
}

template <class Codec>
void DecodeAll(const uint16_t* in, float* out, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreBits(d, Codec::Decode(LoadWire(d, in + i)), out + i); });
}

template <class Codec>
void RoundTripAll(float* values, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreBits(d, Codec::Round(LoadBits(d, values + i)), values + i); });
}

// Leaves the sum as it is.
struct NoCodec {
  template <class VBits>
  static VBits Round(VBits v) {
    return v;
  }
};

template <class Codec>
void AddAll(float* sum, const float* other, size_t n) {
  ForEach(n, [=](auto d, size_t i) HWY_ATTR {
    const auto total = hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, other + i));
    const hn::RebindToUnsigned<decltype(d)> bits;
    StoreBits(d, Codec::Round(hn::BitCast(bits, total)), sum + i);
  });
}

void EncodeHalf(const float* in, uint16_t* out, size_t n) { EncodeAll<Half>(in, out, n); }
void EncodeBFloat(const float* in, uint16_t* out, size_t n) { EncodeAll<BFloat>(in, out, n); }
void DecodeHalf(const uint16_t* in, float* out, size_t n) { DecodeAll<Half>(in, out, n); }
void DecodeBFloat(const uint16_t* in, float* out, size_t n) { DecodeAll<BFloat>(in, out, n); }
void RoundTripHalf(float* values, size_t n) { RoundTripAll<Half>(values, n); }
void RoundTripBFloat(float* values, size_t n) { RoundTripAll<BFloat>(values, n); }
void AddFloat(float* sum, const float* other, size_t n) { AddAll<NoCodec>(sum, other, n); }
void AddHalf(float* sum, const float* other, size_t n) { AddAll<Half>(sum, other, n); }
void AddBFloat(float* sum, const float* other, size_t n) { AddAll<BFloat>(sum, other, n); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(EncodeHalf);
HWY_EXPORT(EncodeBFloat);
HWY_EXPORT(DecodeHalf);
HWY_EXPORT(DecodeBFloat);
HWY_EXPORT(RoundTripHalf);
HWY_EXPORT(RoundTripBFloat);
HWY_EXPORT(AddFloat);
HWY_EXPORT(AddHalf);
HWY_EXPORT(AddBFloat);

WireType ParseWireType(std::string_view name) {
  for (WireType type : {WireType::kFloat32, WireType::kFloat16, WireType::kBFloat16})
    if (name == Name(type)) return type;
  Fail(ErrorCode::kConfig, "unknown wire type '{}': use fp32, fp16 or bf16", name);
}

const char* Name(WireType type) {
  switch (type) {
    case WireType::kFloat32:
      return "fp32";
    case WireType::kFloat16:
      return "fp16";
    case WireType::kBFloat16:
      return "bf16";
  }
  CHECK(false);
  return "";
}

size_t WireBytes(WireType type, size_t n) { return n * (type == WireType::kFloat32 ? 4 : 2); }

void Encode(WireType type, std::span<const float> values, std::byte* wire) {
  auto* out = reinterpret_cast<uint16_t*>(wire);
  switch (type) {
    case WireType::kFloat32:
      if (!values.empty()) std::memcpy(wire, values.data(), values.size_bytes());
      return;
    case WireType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(EncodeHalf)(values.data(), out, values.size());
    case WireType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(EncodeBFloat)(values.data(), out, values.size());
  }
}

void Decode(WireType type, const std::byte* wire, std::span<float> values) {
  const auto* in = reinterpret_cast<const uint16_t*>(wire);
  switch (type) {
    case WireType::kFloat32:
      if (!values.empty()) std::memcpy(values.data(), wire, values.size_bytes());
      return;
    case WireType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(DecodeHalf)(in, values.data(), values.size());
    case WireType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(DecodeBFloat)(in, values.data(), values.size());
  }
}

void RoundTrip(WireType type, std::span<float> values) {
  switch (type) {
    case WireType::kFloat32:
      return;
    case WireType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(RoundTripHalf)(values.data(), values.size());
    case WireType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(RoundTripBFloat)(values.data(), values.size());
  }
}

void AddRoundTrip(WireType type, std::span<float> sum, std::span<const float> other) {
  CHECK(sum.size() == other.size());
  switch (type) {
    case WireType::kFloat32:
      return HWY_DYNAMIC_DISPATCH(AddFloat)(sum.data(), other.data(), sum.size());
    case WireType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(AddHalf)(sum.data(), other.data(), sum.size());
    case WireType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(AddBFloat)(sum.data(), other.data(), sum.size());
  }
}

}  // namespace renzan
#endif  // HWY_ONCE
