#include "renzan/tensor/float_codec.h"

#include <cstdint>
#include <cstring>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/tensor/float_codec.cc"
#include <hwy/foreach_target.h>  // includes this file once per instruction set
#include <hwy/highway.h>

#include "renzan/tensor/float_codec-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Codec>
void EncodeAll(const float* in, uint16_t* out, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreEncoded(d, Codec::Encode(LoadBits(d, in + i)), out + i); });
}

template <class Codec>
void DecodeAll(const uint16_t* in, float* out, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreBits(d, Codec::Decode(LoadEncoded(d, in + i)), out + i); });
}

template <class Codec>
void RoundTripAll(float* values, size_t n) {
  ForEach(n, [=](auto d, size_t i)
                 HWY_ATTR { StoreBits(d, Codec::Round(LoadBits(d, values + i)), values + i); });
}

// No rounding after the sum.
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

FloatType ParseFloatType(std::string_view name) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16})
    if (name == Name(type)) return type;
  Fail(ErrorCode::kConfig, "unknown type of values '{}': use fp32, fp16 or bf16", name);
}

const char* Name(FloatType type) {
  switch (type) {
    case FloatType::kFloat32:
      return "fp32";
    case FloatType::kFloat16:
      return "fp16";
    case FloatType::kBFloat16:
      return "bf16";
  }
  CHECK(false);
  return "";
}

size_t EncodedBytes(FloatType type, size_t n) { return n * (type == FloatType::kFloat32 ? 4 : 2); }

void Encode(FloatType type, std::span<const float> values, std::byte* encoded) {
  auto* out = reinterpret_cast<uint16_t*>(encoded);
  switch (type) {
    case FloatType::kFloat32:
      if (!values.empty()) std::memcpy(encoded, values.data(), values.size_bytes());
      return;
    case FloatType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(EncodeHalf)(values.data(), out, values.size());
    case FloatType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(EncodeBFloat)(values.data(), out, values.size());
  }
}

void Decode(FloatType type, const std::byte* encoded, std::span<float> values) {
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  switch (type) {
    case FloatType::kFloat32:
      if (!values.empty()) std::memcpy(values.data(), encoded, values.size_bytes());
      return;
    case FloatType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(DecodeHalf)(in, values.data(), values.size());
    case FloatType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(DecodeBFloat)(in, values.data(), values.size());
  }
}

void RoundTrip(FloatType type, std::span<float> values) {
  switch (type) {
    case FloatType::kFloat32:
      return;
    case FloatType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(RoundTripHalf)(values.data(), values.size());
    case FloatType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(RoundTripBFloat)(values.data(), values.size());
  }
}

void AddRoundTrip(FloatType type, std::span<float> sum, std::span<const float> other) {
  CHECK(sum.size() == other.size());
  switch (type) {
    case FloatType::kFloat32:
      return HWY_DYNAMIC_DISPATCH(AddFloat)(sum.data(), other.data(), sum.size());
    case FloatType::kFloat16:
      return HWY_DYNAMIC_DISPATCH(AddHalf)(sum.data(), other.data(), sum.size());
    case FloatType::kBFloat16:
      return HWY_DYNAMIC_DISPATCH(AddBFloat)(sum.data(), other.data(), sum.size());
  }
}

}  // namespace renzan
#endif  // HWY_ONCE
