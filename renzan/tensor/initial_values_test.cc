#include "renzan/tensor/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

TEST(DrawInitialRows, IsItsDefinitionOnEveryInstructionSet) {
  constexpr uint64_t kKey = 0x123456789ABCDEF0;
  constexpr float kBound = 0.037f;
  renzan::testing::OnEveryInstructionSet([&] {
    for (const int64_t columns : {1, 3, 4, 6, 8, 10, 12, 16, 20, 64, 100})
      for (const int64_t first_column : {0, 3, 8})
        for (const int64_t first_row : {int64_t{0}, int64_t{7}, (int64_t{1} << 32) - 20})
          for (const uint32_t stride : {1u, 8u, kMostRowStride})
            for (const int64_t rows : {1, 2, 37}) {
              std::vector<float> drawn(static_cast<size_t>(rows * columns));
              DrawInitialRows({.key = kKey, .bound = kBound},
                              {first_row, stride, first_column, columns}, drawn);
              for (int64_t i = 0; i < rows * columns; ++i) {
                const int64_t row = first_row + i / columns * stride;
                const uint64_t column = static_cast<uint64_t>(first_column + i % columns);
                const Philox::Block words =
                    Philox::Draw(kKey, static_cast<uint64_t>(row), column / 4);
                ASSERT_EQ(drawn[static_cast<size_t>(i)],
                          kBound * (2.0f * Philox::Uniform(words[column % 4]) - 1.0f))
                    << "column " << column << " of row " << row << ", drawn with " << columns
                    << " columns, stride " << stride;
              }
            }
  });
}

TEST(DrawInitialRows, FillsTheRangeEvenly) {
  std::vector<float> drawn(64 * 1000);
  DrawInitialRows({.key = 7, .bound = 2.0f}, {.columns = 64}, drawn);
  const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
  EXPECT_GE(*least, -2.0f);
  EXPECT_LT(*least, -1.99f);
  EXPECT_LT(*most, 2.0f);
  EXPECT_GT(*most, 1.99f);
  double sum = 0;
  for (const float value : drawn) sum += static_cast<double>(value);
  EXPECT_NEAR(sum / static_cast<double>(drawn.size()), 0, 0.02);
}

TEST(DrawInitialRows, DrawsTheSameNormalValuesInAnyPieces) {
  constexpr InitialRows kInitial = {
      .key = 0x123456789ABCDEF0, .bound = 0.01f, .distribution = Distribution::kNormal};
  for (const int64_t columns : {1, 3, 4, 10, 64})
    for (const int64_t first_column : {0, 3, 8})
      for (const uint32_t stride : {1u, 8u}) {
        std::vector<float> drawn(static_cast<size_t>(7 * columns));
        DrawInitialRows(kInitial, {5, stride, first_column, columns}, drawn);
        for (int64_t i = 0; i < 7 * columns; ++i) {
          const uint64_t row = static_cast<uint64_t>(5 + i / columns * stride);
          const uint64_t column = static_cast<uint64_t>(first_column + i % columns);
          const double quantile =
              NormalQuantile(Philox::Draw(kInitial.key, row, column / 4)[column % 4]);
          ASSERT_EQ(drawn[static_cast<size_t>(i)],
                    static_cast<float>(static_cast<double>(kInitial.bound) * quantile));
        }
      }
}

TEST(DrawInitialRows, DrawsPositiveZeros) {
  std::vector<float> drawn(40, 1.0f);
  DrawInitialRows({.key = 7, .bound = 2.0f, .distribution = Distribution::kZeros}, {.columns = 8},
                  drawn);
  for (const float value : drawn) {
    EXPECT_EQ(value, 0);
    EXPECT_FALSE(std::signbit(value));
  }
}

// The share of values below the quantile at p is p.
TEST(NormalQuantile, IsThatOfTheNormalDistribution) {
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += 1'234'567) {
    const double p = (static_cast<double>(word) + 0.5) * 0x1p-32;
    const double z = NormalQuantile(static_cast<uint32_t>(word));
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    EXPECT_NEAR(std::erfc(-z / std::numbers::sqrt2) / 2, p, 1e-6 * density) << p;
    EXPECT_EQ(NormalQuantile(~static_cast<uint32_t>(word)), -z);
  }
  EXPECT_NEAR(NormalQuantile(0), -6.3377, 1e-3);
}

}  // namespace
}  // namespace renzan
