#include "renzan/tensor/float_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

constexpr uint32_t kSeed = 20240607;

// The scalar reference implementations work on the real value and share no tricks with the vector
// code.

// A format is defined by its largest value, the bits of its significand (including the leading one)
// and its smallest exponents.
struct Format {
  double largest;
  int significand_bits;
  int min_exponent;  // of the smallest normal number
  int exponent_bias;
};
constexpr Format kHalf = {65504.0, 11, -14, 15};
constexpr Format kBFloat = {0x1.FEp127, 8, -126, 127};

uint16_t ReferenceEncode(const Format& format, float value) {
  const int fraction_bits = format.significand_bits - 1;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<uint16_t>((2 * format.exponent_bias + 1) << fraction_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1 << (fraction_bits - 1));
  double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(magnitude)) return sign | infinity;
  magnitude = std::min(magnitude, format.largest);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent);
  // In units of the last place; nearbyint rounds to even.
  const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent));
  // A carry into the next exponent gives the right bits.
  const auto bits = static_cast<uint32_t>(units) +
                    (static_cast<uint32_t>(exponent - format.min_exponent) << fraction_bits);
  return static_cast<uint16_t>(sign | bits);
}

uint32_t ReferenceDecode(const Format& format, uint16_t wire) {
  const int fraction_bits = format.significand_bits - 1;
  const uint32_t fraction = wire & ((1u << fraction_bits) - 1);
  const int exponent = (wire & 0x7FFF) >> fraction_bits;
  const uint32_t sign = (wire & 0x8000u) << 16;
  if (exponent == 2 * format.exponent_bias + 1)
    return sign | 0x7F800000u | fraction << (23 - fraction_bits);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, format.min_exponent - fraction_bits)
                               : std::ldexp(fraction + (1u << fraction_bits),
                                            exponent - format.exponent_bias - fraction_bits);
  return sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude));
}

const Format& FormatOf(FloatType type) { return type == FloatType::kFloat16 ? kHalf : kBFloat; }

std::vector<uint16_t> EncodeAll(FloatType type, const std::vector<float>& values) {
  std::vector<uint16_t> wire(values.size());
  Encode(type, values, reinterpret_cast<std::byte*>(wire.data()));
  return wire;
}

std::vector<float> TestValues() {
  std::vector<float> values;
  // Every 16-bit prefix, with low halves around the rounding boundaries.
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  // float16 ties are in the 13 lowest bits.
  for (uint32_t high = 0; high < 0x80000; ++high)
    values.push_back(std::bit_cast<float>(high << 13 | 0x1000u));
  std::mt19937 random(kSeed);
  for (int i = 0; i < 500000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  // float16's subnormal range, which random exponents rarely hit.
  std::uniform_real_distribution<float> tiny(-0x1p-13f, 0x1p-13f);
  for (int i = 0; i < 200000; ++i) values.push_back(tiny(random));
  return values;
}

class Codec16 : public ::testing::TestWithParam<FloatType> {};
INSTANTIATE_TEST_SUITE_P(Types, Codec16,
                         ::testing::Values(FloatType::kFloat16, FloatType::kBFloat16),
                         [](const auto& info) { return Name(info.param); });

TEST_P(Codec16, EncodesLikeTheReference) {
  const std::vector<float> values = TestValues();
  std::vector<uint16_t> expected;
  for (float value : values) expected.push_back(ReferenceEncode(FormatOf(GetParam()), value));
  testing::OnEveryInstructionSet([&] {
    const std::vector<uint16_t> wire = EncodeAll(GetParam(), values);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(wire[i], expected[i]) << "bits " << std::bit_cast<uint32_t>(values[i]);
  });
}

TEST_P(Codec16, DecodesEveryValueLikeTheReference) {
  std::vector<uint16_t> wire(0x10000);
  for (uint32_t i = 0; i < wire.size(); ++i) wire[i] = static_cast<uint16_t>(i);
  testing::OnEveryInstructionSet([&] {
    std::vector<float> values(wire.size());
    Decode(GetParam(), reinterpret_cast<const std::byte*>(wire.data()), values);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), ReferenceDecode(FormatOf(GetParam()), wire[i]))
          << i;
  });
}

TEST_P(Codec16, RoundTripIsDecodeOfEncodeAndIdempotent) {
  const std::vector<float> values = TestValues();
  testing::OnEveryInstructionSet([&] {
    const std::vector<uint16_t> wire = EncodeAll(GetParam(), values);
    std::vector<float> decoded(values.size()), rounded = values;
    Decode(GetParam(), reinterpret_cast<const std::byte*>(wire.data()), decoded);
    RoundTrip(GetParam(), rounded);
    EXPECT_EQ(std::memcmp(decoded.data(), rounded.data(), values.size() * 4), 0);
    EXPECT_EQ(EncodeAll(GetParam(), rounded), wire);
  });
}

TEST_P(Codec16, AddRoundTripRoundsTheSum) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<float> a(1003), b(1003), expected(1003);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = normal(random);
    b[i] = 1e-3f * normal(random);
    const uint16_t wire = ReferenceEncode(FormatOf(GetParam()), a[i] + b[i]);
    expected[i] = std::bit_cast<float>(ReferenceDecode(FormatOf(GetParam()), wire));
  }
  testing::OnEveryInstructionSet([&] {
    std::vector<float> sum = a;
    AddRoundTrip(GetParam(), sum, b);
    EXPECT_EQ(sum, expected);
  });
}

// Every length up to a few vectors, from addresses with no alignment, with guards around.
TEST_P(Codec16, EveryLengthAndAlignment) {
  testing::OnEveryInstructionSet([&] {
    for (size_t n = 0; n < 70; ++n) {
      std::vector<float> values(n + 1, -7.0f);
      for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 50) + 0.25f;
      std::vector<std::byte> wire(2 * n + 2, std::byte{0xAB});
      Encode(GetParam(), {values.data(), n}, wire.data() + 1);
      EXPECT_EQ(wire.front(), std::byte{0xAB});
      EXPECT_EQ(wire.back(), std::byte{0xAB});
      std::vector<float> back(n + 1, -7.0f);
      Decode(GetParam(), wire.data() + 1, {back.data(), n});
      EXPECT_EQ(back, values) << n;
    }
  });
}

TEST(CodecTest, CornerCases) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float huge = std::numeric_limits<float>::max();
  std::vector<float> half = {1e6f, -huge, infinity, -infinity, 65519.99f, 0x1p-25f, 0x1.8p-25f};
  RoundTrip(FloatType::kFloat16, half);
  EXPECT_THAT(half, ::testing::ElementsAre(65504, -65504, infinity, -infinity, 65504, 0, 0x1p-24f));
  std::vector<float> bfloat = {huge, -huge, infinity, 1.00390625f, 1.01171875f};
  RoundTrip(FloatType::kBFloat16, bfloat);
  EXPECT_THAT(bfloat, ::testing::ElementsAre(0x1.FEp127f, -0x1.FEp127f, infinity, 1.0f, 1.015625f));
  for (FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    std::vector<float> nan = {std::nanf(""), -std::nanf("77"), std::bit_cast<float>(0x7F800001u)};
    RoundTrip(type, nan);
    EXPECT_THAT(nan, ::testing::Each(::testing::IsNan()));
  }
}

TEST(CodecTest, Float32IsExact) {
  const std::vector<float> values = {1.1f, -0.0f, 1e-45f, 3e38f};
  std::vector<float> copy(values.size());
  std::vector<std::byte> wire(EncodedBytes(FloatType::kFloat32, values.size()));
  Encode(FloatType::kFloat32, values, wire.data());
  Decode(FloatType::kFloat32, wire.data(), copy);
  RoundTrip(FloatType::kFloat32, copy);
  EXPECT_EQ(std::memcmp(values.data(), copy.data(), wire.size()), 0);
  AddRoundTrip(FloatType::kFloat32, copy, values);
  EXPECT_EQ(copy[0], 1.1f + 1.1f);
}

TEST(CodecTest, Names) {
  for (const char* name : {"fp32", "fp16", "bf16"}) EXPECT_STREQ(Name(ParseFloatType(name)), name);
  EXPECT_THROW(ParseFloatType("float"), Error);
}

}  // namespace
}  // namespace renzan
