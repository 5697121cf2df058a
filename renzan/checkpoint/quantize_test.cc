#include "renzan/checkpoint/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

std::vector<float> RoundTrip(const std::vector<float>& row, RowScale* scale = nullptr) {
  const RowScale found = ScaleOf(row);
  if (scale != nullptr) *scale = found;
  std::vector<uint8_t> q8(row.size());
  QuantizeRow(row, found, q8);
  std::vector<float> back(row.size());
  DequantizeRow(q8, found, back);
  return back;
}

void ExpectWithinBound(const std::vector<float>& row) {
  RowScale scale;
  const std::vector<float> back = RoundTrip(row, &scale);
  double largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(double{value}));
  const double bound = double{scale.scale} / 2 + std::ldexp(largest, -23) + std::ldexp(1, -141);
  for (size_t i = 0; i < row.size(); ++i)
    ASSERT_LE(std::abs(double{back[i]} - double{row[i]}), bound)
        << row[i] << " became " << back[i] << " with scale " << scale.scale;
}

TEST(Quantize, StaysWithinItsBound) {
  for (uint64_t i = 0; i < 3000; ++i) {
    const Philox::Block shape = Philox::Draw(11, i);
    const int exponent = static_cast<int>(shape[0] % 270) - 145;
    const float shift = static_cast<float>(shape[1] % 7) - 3;
    std::vector<float> row(1 + shape[2] % 130);
    for (size_t j = 0; j < row.size(); ++j) {
      const double unit = static_cast<double>(Philox::Draw(i + 100, j)[0]) / 4294967296.0;
      row[j] = static_cast<float>(std::ldexp(unit + double{shift}, exponent));
    }
    ExpectWithinBound(row);
  }
}

TEST(Quantize, ExtremeRowsStayWithinTheBound) {
  for (const std::vector<float>& row : {std::vector<float>{kMax, -kMax, 0, 1},
                                        {kMax, std::nextafter(kMax, 0.f)},
                                        {0, kTiny},
                                        {-kTiny, kTiny, 0},
                                        {0, 300 * kTiny, 255 * kTiny},
                                        {1, std::nextafter(1.f, 2.f)},
                                        {1e30f, 1e-30f, -1e-30f}})
    ExpectWithinBound(row);
  // For some of these the scale rounds up and could overflow.
  for (int i = 0; i <= 1000; ++i)
    ExpectWithinBound({kMax, kMax * (1e-3f * static_cast<float>(-i))});
  EXPECT_THAT(RoundTrip({0, kTiny}), testing::ElementsAre(0, kTiny));
}

TEST(Quantize, EqualValuesAreExact) {
  for (const float value : {0.f, 0.1f, -kMax, kTiny}) {
    RowScale scale;
    const std::vector<float> row(5, value);
    EXPECT_EQ(RoundTrip(row, &scale), row);
    EXPECT_EQ(scale.scale, 0);
  }
  EXPECT_TRUE(RoundTrip({}).empty());
}

TEST(Quantize, ScaleSpansTheRow) {
  RowScale scale;
  const std::vector<float> back = RoundTrip({-1, 0, 1, 254}, &scale);
  EXPECT_THAT(back, testing::ElementsAre(-1, 0, 1, 254));
  EXPECT_EQ(scale.scale, 1);
  EXPECT_EQ(scale.offset, -1);
}

TEST(Quantize, NonFiniteRowsBecomeNaN) {
  for (const float bad : {INFINITY, -INFINITY, NAN})
    for (size_t at = 0; at < 3; ++at) {
      std::vector<float> row = {1, 2, 3};
      row[at] = bad;
      EXPECT_THAT(RoundTrip(row), testing::Each(testing::IsNan()));
    }
}

// The codes do not depend on the size of the pieces, which may end inside rows.
TEST(Quantize, ReadsRowsOnceForPiecesOfAnySize) {
  constexpr int64_t kRows = 7, kDim = 5;
  const auto value = [](int64_t i) { return static_cast<float>(i / kDim * 100 + i % kDim); };
  std::vector<std::byte> whole;
  for (const size_t piece : {35, 1, 4, 5, 6, 34}) {
    int64_t next = 0;
    const QuantizedSources sources = QuantizeRows("w", kRows, kDim, [&](std::span<float> out) {
      for (float& v : out) v = value(next++);
    });
    std::vector<std::byte> codes(kRows * kDim);
    for (size_t i = 0; i < codes.size(); i += piece)
      sources.codes.read(i, std::span(codes).subspan(i, std::min(piece, codes.size() - i)));
    EXPECT_EQ(next, kRows * kDim);
    if (whole.empty()) whole = codes;
    EXPECT_EQ(codes, whole) << piece;

    std::vector<float> scale(kRows), offset(kRows);
    sources.scales[0].read(0, std::as_writable_bytes(std::span(scale)));
    sources.scales[1].read(0, std::as_writable_bytes(std::span(offset)));
    for (int64_t row = 0; row < kRows; ++row) {
      const size_t r = static_cast<size_t>(row);
      EXPECT_EQ(offset[r], value(row * kDim));
      EXPECT_FLOAT_EQ(scale[r], (kDim - 1) / 255.f);
      EXPECT_EQ(codes[r * kDim + kDim - 1], std::byte{255});
    }
  }
}

}  // namespace
}  // namespace renzan
