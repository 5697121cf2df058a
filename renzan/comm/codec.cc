#include "renzan/comm/codec.h"

#include <cstdint>
#include <cstring>

#include "renzan/base/error.h"

// SSSE3 alone is worth no code of its own.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/comm/codec.cc"
#include <hwy/foreach_target.h>  // includes this file once per instruction set
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Float = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Float>;  // float32 as integers
using Wide = hn::RebindToSigned<Float>;
using Narrow = hn::Rebind<uint16_t, Float>;  // as many 16-bit values
using VFloat = hn::Vec<Float>;
using VBits = hn::Vec<Bits>;

constexpr uint32_t kInfinity = 0x7F800000;

// Each codec turns float32 bits into 16 wire bits (in the low half of a lane) and back, with
// integer operations and at most one exact or correctly rounded addition of normal numbers, so that
// neither the instruction set nor a flush-to-zero mode can reach the result.

// Comparisons of values below 2^31, which every target has as signed ones.
auto Less(VBits a, VBits b) {
  const Wide w;
  return hn::RebindMask(Bits(), hn::Lt(hn::BitCast(w, a), hn::BitCast(w, b)));
}

// The result for a finite value, or what stands for infinity and NaN.
VBits WithSpecials(VBits magnitude, VBits finite, uint32_t infinity, uint32_t nan) {
  const Bits d;
  const VBits limit = hn::Set(d, kInfinity);
  const VBits special =
      hn::IfThenElse(Less(limit, magnitude), hn::Set(d, nan), hn::Set(d, infinity));
  return hn::IfThenElse(Less(magnitude, limit), finite, special);
}

struct Half {
  static VBits Encode(VBits v) {
    const Bits d;
    const Float f;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x477FE000u));  // 65504, the largest
    // Normal: move the exponent's bias from 127 to 15, round the 13 lost bits to nearest even.
    const VBits odd = hn::And(hn::ShiftRight<13>(finite), hn::Set(d, 1u));
    const VBits normal = hn::ShiftRight<13>(hn::Add(hn::Add(finite, hn::Set(d, 0xC8000FFFu)), odd));
    // Subnormal, below 2^-14: the last bit of 0.5 is 2^-24, so adding 0.5 rounds as we need.
    const VBits half = hn::Set(d, 0x3F000000u);
    const VBits subnormal =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(f, finite), hn::BitCast(f, half))), half);
    VBits result = hn::IfThenElse(Less(finite, hn::Set(d, 113u << 23)), subnormal, normal);
    result = WithSpecials(magnitude, result, 0x7C00, 0x7E00);
    return hn::Or(result, hn::ShiftRight<16>(sign));
  }

  static VBits Decode(VBits h) {
    const Bits d;
    const Float f;
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
  static VBits Round(VBits v) {
    const Bits d;
    const Float f;
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
  static VBits Encode(VBits v) { return hn::ShiftRight<16>(Round(v)); }

  static VBits Decode(VBits h) { return hn::ShiftLeft<16>(h); }

  static VBits Round(VBits v) {
    const Bits d;
    const VBits sign = hn::And(v, hn::Set(d, 0x80000000u));
    const VBits magnitude = hn::Xor(v, sign);
    const VBits finite = hn::Min(magnitude, hn::Set(d, 0x7F7F0000u));  // the largest
    const VBits odd = hn::And(hn::ShiftRight<16>(finite), hn::Set(d, 1u));
    const VBits result =
        hn::And(hn::Add(hn::Add(finite, hn::Set(d, 0x7FFFu)), odd), hn::Set(d, 0xFFFF0000u));
    return hn::Or(WithSpecials(magnitude, result, kInfinity, 0x7FC00000), sign);
  }
};

VBits LoadWire(const uint16_t* p) { return hn::PromoteTo(Bits(), hn::LoadU(Narrow(), p)); }

void StoreWire(VBits v, uint16_t* p) {
  hn::StoreU(hn::DemoteTo(Narrow(), hn::BitCast(Wide(), v)), Narrow(), p);
}

VBits LoadBits(const float* p) { return hn::BitCast(Bits(), hn::LoadU(Float(), p)); }
void StoreBits(VBits v, float* p) { hn::StoreU(hn::BitCast(Float(), v), Float(), p); }

// Calls step(in, out) on whole vectors; the last few elements pass through buffers of one vector.
// `In` and `Out` may be the same array.
template <class In, class Out, class Step>
void ForEachVector(const In* in, Out* out, size_t n, const Step& step) {
  const size_t lanes = hn::Lanes(Float());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) step(in + i, out + i);
  if (i == n) return;
  HWY_ALIGN In in_tail[hn::MaxLanes(Float())] = {};
  HWY_ALIGN Out out_tail[hn::MaxLanes(Float())];
  std::memcpy(in_tail, in + i, (n - i) * sizeof(In));
  step(in_tail, out_tail);
  std::memcpy(out + i, out_tail, (n - i) * sizeof(Out));
}

template <class Codec>
void EncodeAll(const float* in, uint16_t* out, size_t n) {
  ForEachVector(in, out, n, [](const float* from, uint16_t* to) {
    StoreWire(Codec::Encode(LoadBits(from)), to);
  });
}

template <class Codec>
void DecodeAll(const uint16_t* in, float* out, size_t n) {
  ForEachVector(in, out, n, [](const uint16_t* from, float* to) {
    StoreBits(Codec::Decode(LoadWire(from)), to);
  });
}

template <class Codec>
void RoundTripAll(float* values, size_t n) {
  ForEachVector(values, values, n,
                [](const float* from, float* to) { StoreBits(Codec::Round(LoadBits(from)), to); });
}

// With NoCodec the sum is left as it is.
struct NoCodec;

template <class Codec>
void AddAll(float* sum, const float* other, size_t n) {
  const Float f;
  const size_t lanes = hn::Lanes(f);
  size_t i = 0;
  const auto step = [&f](const float* a, const float* b, float* to) {
    const VFloat total = hn::Add(hn::LoadU(f, a), hn::LoadU(f, b));
    if constexpr (std::is_same_v<Codec, NoCodec>) {
      hn::StoreU(total, f, to);
    } else {
      StoreBits(Codec::Round(hn::BitCast(Bits(), total)), to);
    }
  };
  for (; i + lanes <= n; i += lanes) step(sum + i, other + i, sum + i);
  if (i == n) return;
  HWY_ALIGN float a[hn::MaxLanes(f)] = {}, b[hn::MaxLanes(f)] = {};
  std::memcpy(a, sum + i, (n - i) * sizeof(float));
  std::memcpy(b, other + i, (n - i) * sizeof(float));
  step(a, b, a);
  std::memcpy(sum + i, a, (n - i) * sizeof(float));
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
