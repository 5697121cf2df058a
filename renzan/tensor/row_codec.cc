#include "renzan/tensor/row_codec.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "renzan/base/error.h"
#include "renzan/tensor/float_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/tensor/row_codec.cc"
#include <hwy/foreach_target.h>  // includes this file once per instruction set
#include <hwy/highway.h>

#include "renzan/tensor/float_codec-inl.h"
#include "renzan/tensor/simd_for_each-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace {

// Magnitudes up to (2^kBits - 1)·2^e, where 2^kBits·2^e is the power of two above the largest.
struct Int8 {
  static constexpr int kBits = 7;
};
struct Int4 {
  static constexpr int kBits = 3;
};

constexpr uint8_t kNaNScale = 255, kMinScale = 127 - 100;

// 2^(scale - 127).
HWY_INLINE float PowerOfTwo(uint32_t scale) {
  const uint32_t bits = scale << 23;
  float value;
  hwy::CopySameSize(&bits, &value);
  return value;
}

// The byte that stands for the row's exponent. Magnitudes compare as integers.
template <class Int>
uint8_t ScaleOf(const float* row, size_t n) {
  const hn::ScalableTag<float> wide;
  const hn::RebindToUnsigned<decltype(wide)> wide_bits;
  auto largest = hn::Zero(wide_bits);
  uint32_t max = 0;
  const size_t lanes = hn::Lanes(wide);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    largest = hn::Max(largest, hn::And(LoadBits(wide, row + i), hn::Set(wide_bits, 0x7FFFFFFFu)));
  if (i > 0) max = hn::GetLane(hn::MaxOfLanes(wide_bits, largest));
  for (; i < n; ++i) {
    uint32_t bits;
    hwy::CopySameSize(row + i, &bits);
    max = HWY_MAX(max, bits & 0x7FFFFFFFu);
  }
  if (max >= kInfinityBits) return kNaNScale;
  // A significand that would round up to 2^kBits carries into the exponent.
  const uint32_t exponent = (max + (1u << (23 - Int::kBits))) >> 23;
  constexpr uint32_t kLargestExponent = 254, kShift = Int::kBits - 1;
  return static_cast<uint8_t>(HWY_MAX(HWY_MIN(exponent, kLargestExponent), kMinScale + kShift) -
                              kShift);
}

// Nearest even q of values times `inverse`.
template <class Int, class D>
HWY_INLINE auto Quantized(D d, const float* values, float inverse) {
  const hn::RebindToSigned<D> w;
  constexpr int32_t kLargest = (1 << Int::kBits) - 1;
  const auto q = hn::NearestInt(hn::Mul(hn::LoadU(d, values), hn::Set(d, inverse)));
  return hn::Max(hn::Min(q, hn::Set(w, kLargest)), hn::Set(w, -kLargest));
}

template <class Int>
void RoundTripInt(float* row, size_t n) {
  const uint8_t scale = ScaleOf<Int>(row, n);
  if (scale == kNaNScale) {
    std::fill_n(row, n, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const float power = PowerOfTwo(scale), inverse = PowerOfTwo(254u - scale);
  ForEach(n, [=](auto d, size_t i) HWY_ATTR {
    const auto q = Quantized<Int>(d, row + i, inverse);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, q), hn::Set(d, power)), d, row + i);
  });
}

void EncodeInt8(const float* row, size_t n, uint8_t* out) {
  out[0] = ScaleOf<Int8>(row, n);
  if (out[0] == kNaNScale) return (void)std::fill_n(out + 1, n, uint8_t{0});
  const float inverse = PowerOfTwo(254u - out[0]);
  int8_t* const to = reinterpret_cast<int8_t*>(out + 1);
  ForEach(n, [=](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> narrow;
    hn::StoreU(hn::DemoteTo(narrow, Quantized<Int8>(d, row + i, inverse)), narrow, to + i);
  });
}

void DecodeInt8(const uint8_t* in, size_t n, float* row) {
  if (in[0] == kNaNScale) {
    std::fill_n(row, n, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const float power = PowerOfTwo(in[0]);
  const int8_t* const from = reinterpret_cast<const int8_t*>(in + 1);
  ForEach(n, [=](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> narrow;
    const auto q = hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), hn::LoadU(narrow, from + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, q), hn::Set(d, power)), d, row + i);
  });
}

void EncodeInt4(const float* row, size_t n, uint8_t* out) {
  const size_t low = (n + 1) / 2, high = n / 2;
  out[0] = ScaleOf<Int4>(row, n);
  if (out[0] == kNaNScale) return (void)std::fill_n(out + 1, low, uint8_t{0});
  const float inverse = PowerOfTwo(254u - out[0]);
  uint8_t* const to = out + 1;
  const auto half = [&](auto d, size_t column)
                        HWY_ATTR { return Quantized<Int4>(d, row + column, inverse); };
  const auto store = [&](auto d, auto q, size_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> narrow;
    hn::StoreU(hn::DemoteTo(narrow, q), narrow, to + i);
  };
  ForEach(high, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> w;
    const auto lows = hn::And(half(d, i), hn::Set(w, 0x0F));
    const auto highs = hn::And(hn::ShiftLeft<4>(half(d, low + i)), hn::Set(w, 0xF0));
    store(d, hn::Or(lows, highs), i);
  });
  if (low == high) return;
  const hn::CappedTag<float, 1> one;
  const hn::RebindToSigned<decltype(one)> w;
  store(one, hn::And(half(one, high), hn::Set(w, 0x0F)), high);
}

void DecodeInt4(const uint8_t* in, size_t n, float* row) {
  if (in[0] == kNaNScale) {
    std::fill_n(row, n, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const float power = PowerOfTwo(in[0]);
  const uint8_t* const from = in + 1;
  const size_t low = (n + 1) / 2;
  const auto load = [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> narrow;
    return hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), hn::LoadU(narrow, from + i));
  };
  const auto store = [&](auto d, auto q, size_t column) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::ConvertTo(d, q), hn::Set(d, power)), d, row + column);
  };
  // The shifts extend the sign of four bits.
  ForEach(low, [&](auto d, size_t i)
                   HWY_ATTR { store(d, hn::ShiftRight<28>(hn::ShiftLeft<28>(load(d, i))), i); });
  ForEach(n / 2, [&](auto d, size_t i) HWY_ATTR {
    store(d, hn::ShiftRight<28>(hn::ShiftLeft<24>(load(d, i))), low + i);
  });
}

void RoundTripInt8(float* row, size_t n) { RoundTripInt<Int8>(row, n); }
void RoundTripInt4(float* row, size_t n) { RoundTripInt<Int4>(row, n); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(EncodeInt8);
HWY_EXPORT(EncodeInt4);
HWY_EXPORT(DecodeInt8);
HWY_EXPORT(DecodeInt4);
HWY_EXPORT(RoundTripInt8);
HWY_EXPORT(RoundTripInt4);

namespace {

// Only for codecs that encode value by value.
FloatType TypeOf(RowCodec codec) {
  CHECK(codec <= RowCodec::kBFloat16);
  return static_cast<FloatType>(codec);
}

}  // namespace

const std::vector<std::string>& RowCodecNames() {
  static const auto* const names =
      new std::vector<std::string>{"fp32", "fp16", "bf16", "int8", "int4"};
  return *names;
}

RowCodec ParseRowCodec(std::string_view name) {
  const std::vector<std::string>& names = RowCodecNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    Fail(ErrorCode::kConfig, "unknown codec of rows '{}': use fp32, fp16, bf16, int8 or int4",
         name);
  return static_cast<RowCodec>(found - names.begin());
}

size_t EncodedRowBytes(RowCodec codec, size_t columns) {
  switch (codec) {
    case RowCodec::kInt8:
      return 1 + columns;
    case RowCodec::kInt4:
      return 1 + (columns + 1) / 2;
    default:
      return EncodedBytes(TypeOf(codec), columns);
  }
}

void EncodeRows(RowCodec codec, size_t columns, std::span<const float> rows, std::byte* encoded) {
  if (codec <= RowCodec::kBFloat16) return Encode(TypeOf(codec), rows, encoded);
  const size_t row_bytes = EncodedRowBytes(codec, columns);
  auto* out = reinterpret_cast<uint8_t*>(encoded);
  for (size_t i = 0; i < rows.size(); i += columns, out += row_bytes)
    if (codec == RowCodec::kInt8) {
      HWY_DYNAMIC_DISPATCH(EncodeInt8)(rows.data() + i, columns, out);
    } else {
      HWY_DYNAMIC_DISPATCH(EncodeInt4)(rows.data() + i, columns, out);
    }
}

void DecodeRows(RowCodec codec, size_t columns, const std::byte* encoded, std::span<float> rows) {
  if (codec <= RowCodec::kBFloat16) return Decode(TypeOf(codec), encoded, rows);
  const size_t row_bytes = EncodedRowBytes(codec, columns);
  const auto* in = reinterpret_cast<const uint8_t*>(encoded);
  for (size_t i = 0; i < rows.size(); i += columns, in += row_bytes)
    if (codec == RowCodec::kInt8) {
      HWY_DYNAMIC_DISPATCH(DecodeInt8)(in, columns, rows.data() + i);
    } else {
      HWY_DYNAMIC_DISPATCH(DecodeInt4)(in, columns, rows.data() + i);
    }
}

void RoundTripRow(RowCodec codec, std::span<float> row) {
  switch (codec) {
    case RowCodec::kInt8:
      return HWY_DYNAMIC_DISPATCH(RoundTripInt8)(row.data(), row.size());
    case RowCodec::kInt4:
      return HWY_DYNAMIC_DISPATCH(RoundTripInt4)(row.data(), row.size());
    default:
      return RoundTrip(TypeOf(codec), row);
  }
}

void AddRoundTripRow(RowCodec codec, std::span<float> sum, std::span<const float> other) {
  if (codec <= RowCodec::kBFloat16) return AddRoundTrip(TypeOf(codec), sum, other);
  AddRoundTrip(FloatType::kFloat32, sum, other);
  RoundTripRow(codec, sum);
}

}  // namespace renzan
#endif  // HWY_ONCE
