#include "renzan/tensor/row_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "renzan/base/error.h"
#include "renzan/tensor/float_codec.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNan;

constexpr RowCodec kAll[] = {RowCodec::kFloat32, RowCodec::kFloat16, RowCodec::kBFloat16,
                             RowCodec::kInt8, RowCodec::kInt4};
constexpr RowCodec kIntegers[] = {RowCodec::kInt8, RowCodec::kInt4};

using Row = std::vector<float>;

double LargestOf(RowCodec codec) { return codec == RowCodec::kInt8 ? 127 : 7; }

// By the definition, in float64.
Row ReferenceRoundTrip(RowCodec codec, const Row& row) {
  double magnitude = 0;
  for (const float value : row) {
    if (!std::isfinite(value)) return Row(row.size(), NAN);
    magnitude = std::max(magnitude, std::fabs(static_cast<double>(value)));
  }
  const double largest = LargestOf(codec);
  const int highest = codec == RowCodec::kInt8 ? 121 : 125;
  int exponent = -100;
  while (exponent < highest && std::nearbyint(std::ldexp(magnitude, -exponent)) > largest)
    ++exponent;
  Row rounded;
  for (const float value : row) {
    const double q = std::nearbyint(std::ldexp(static_cast<double>(value), -exponent));
    rounded.push_back(static_cast<float>(std::ldexp(std::clamp(q, -largest, largest), exponent)) +
                      0.0f);
  }
  return rounded;
}

Row Decoded(RowCodec codec, const Row& row) {
  std::vector<std::byte> encoded(EncodedRowBytes(codec, row.size()));
  EncodeRows(codec, row.size(), row, encoded.data());
  Row decoded(row.size());
  DecodeRows(codec, row.size(), encoded.data(), decoded);
  return decoded;
}

Row RoundTripped(RowCodec codec, Row row) {
  RoundTripRow(codec, row);
  return row;
}

std::vector<Row> RandomRows() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Row> rows;
  for (size_t columns = 1; columns <= 70; ++columns)
    for (const int exponent : {-140, -101, -99, -20, 0, 5, 120}) {
      Row row(columns);
      for (float& value : row) value = std::ldexp(normal(random), exponent);
      rows.push_back(row);
    }
  // At the edges of a scale, and of float32.
  for (const float x :
       {127.0f, 127.49f, 127.5f, 127.51f, 128.0f, 7.0f, 7.49f, 7.5f, 7.51f, 8.0f, 63.75f, 3.75f,
        0.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
        std::numeric_limits<float>::denorm_min()})
    rows.push_back({x, -x, x / 2, 1, -0.5f, 1.5f, -0.0f});
  return rows;
}

TEST(RowCodec, FollowsItsDefinitionOnEveryInstructionSet) {
  const std::vector<Row> rows = RandomRows();
  for (const RowCodec codec : kIntegers)
    testing::OnEveryInstructionSet([&] {
      for (const Row& row : rows) {
        const Row expected = ReferenceRoundTrip(codec, row);
        ASSERT_EQ(RoundTripped(codec, row), expected);
        ASSERT_EQ(Decoded(codec, row), expected);
      }
    });
}

TEST(RowCodec, ARowThatWasRoundedStaysAsItIs) {
  for (const RowCodec codec : kAll)
    for (const Row& row : RandomRows()) {
      const Row once = RoundTripped(codec, row);
      ASSERT_EQ(RoundTripped(codec, once), once);
      ASSERT_EQ(Decoded(codec, row), once);
    }
}

TEST(RowCodec, ANodeIsTheRoundedSum) {
  const Row a = {1, 2, 3.3f}, b = {100, -2, 0.25f};
  for (const RowCodec codec : kAll) {
    Row sum = a;
    AddRoundTripRow(codec, sum, b);
    EXPECT_EQ(sum, RoundTripped(codec, {101, 0, 3.55f}));
  }
}

TEST(RowCodec, NotANumberAndInfinityFillTheRow) {
  for (const RowCodec codec : kIntegers)
    for (const float special : {NAN, INFINITY, -INFINITY})
      for (const size_t place : {0u, 16u, 18u}) {
        Row row(19, 1);
        row[place] = special;
        EXPECT_THAT(Decoded(codec, row), Each(IsNan()));
        EXPECT_THAT(RoundTripped(codec, row), Each(IsNan()));
      }
}

TEST(RowCodec, BytesAreAsDocumented) {
  const Row row = {127, -64, 1};
  std::vector<std::byte> encoded(EncodedRowBytes(RowCodec::kInt8, 3));
  EncodeRows(RowCodec::kInt8, 3, row, encoded.data());
  EXPECT_THAT(encoded, ElementsAre(std::byte{127}, std::byte{127}, std::byte{0xC0}, std::byte{1}));
  encoded.resize(EncodedRowBytes(RowCodec::kInt4, 3));
  EncodeRows(RowCodec::kInt4, 3, Row{14, -2, -12}, encoded.data());  // 7, -1, -6 times 2
  EXPECT_THAT(encoded, ElementsAre(std::byte{128}, std::byte{0xA7}, std::byte{0x0F}));
}

TEST(RowCodec, RowsOfAMatrixHaveScalesOfTheirOwn) {
  const Row rows = {1e-6f, 2e-6f, 3e6f, 4e6f};
  for (const RowCodec codec : kAll) {
    std::vector<std::byte> encoded(2 * EncodedRowBytes(codec, 2));
    EncodeRows(codec, 2, rows, encoded.data());
    Row decoded(4);
    DecodeRows(codec, 2, encoded.data(), decoded);
    Row expected = RoundTripped(codec, {1e-6f, 2e-6f});
    for (const float value : RoundTripped(codec, {3e6f, 4e6f})) expected.push_back(value);
    EXPECT_EQ(decoded, expected);
  }
}

TEST(RowCodec, NamesAreThoseOfFloatTypesAndOfIntegers) {
  for (size_t i = 0; i < std::size(kAll); ++i)
    EXPECT_EQ(ParseRowCodec(RowCodecNames()[i]), kAll[i]);
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16})
    EXPECT_EQ(EncodedRowBytes(ParseRowCodec(Name(type)), 5), EncodedBytes(type, 5));
  EXPECT_THROW(ParseRowCodec("int3"), Error);
}

}  // namespace
}  // namespace renzan
