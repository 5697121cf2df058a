#include "renzan/tensor/blocked_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

class BlockedMatrixOf : public ::testing::TestWithParam<Precision> {};

TEST_P(BlockedMatrixOf, RowsMayBeginAndEndAnywhere) {
  const int64_t rows = 3, columns = 80;
  for (const int64_t begin : {0, 5, 16, 30, 32}) {
    for (const int64_t n : {0, 1, 11, 16, 20, 32, 45}) {
      std::vector<float> expected(rows * columns, -1.0f), values(static_cast<size_t>(n));
      std::iota(values.begin(), values.end(), 1.0f);
      BlockedMatrix matrix = Blocked(expected, rows, columns, GetParam());
      matrix.SetRow(1, begin, values.data(), n);
      std::copy(values.begin(), values.end(), expected.begin() + columns + begin);
      EXPECT_EQ(RowMajor(matrix), expected);
      std::vector<float> back(static_cast<size_t>(n));
      matrix.GetRow(1, begin, back.data(), n);
      EXPECT_EQ(back, values);
    }
  }
}

TEST_P(BlockedMatrixOf, ColumnsAreThoseOfItsRows) {
  const int64_t rows = 5, columns = 100;
  for (const int64_t begin : {0, 5, 16, 31, 32}) {
    for (const int64_t n : {1, 11, 16, 32, 45, 64}) {
      std::vector<float> expected(rows * columns, -1.0f), values(static_cast<size_t>(rows * n));
      std::iota(values.begin(), values.end(), 1.0f);
      for (float& value : values) value = FromBFloat16(ToBFloat16(value));
      BlockedMatrix matrix = Blocked(expected, rows, columns, GetParam());
      matrix.SetColumns(begin, values.data(), n);
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(values.begin() + row * n, n, expected.begin() + row * columns + begin);
      EXPECT_EQ(RowMajor(matrix), expected);
      std::vector<float> back(values.size());
      matrix.GetColumns(begin, back.data(), n);
      EXPECT_EQ(back, values);
    }
  }
}

TEST_P(BlockedMatrixOf, WhatFillsUpTheLastBlockIsZeroAfterAnotherShape) {
  const std::vector<float> ones(4 * 64, 1.0f);
  BlockedMatrix matrix = Blocked(ones, 4, 64, GetParam());
  matrix.Reshape(4, 41, GetParam());
  for (int64_t row = 0; row < 4; ++row) {
    matrix.SetRow(row, 0, ones.data(), 41);
    // As values of a wider matrix of the same rows.
    const auto* line = reinterpret_cast<const std::byte*>(matrix.block(matrix.num_blocks() - 1) +
                                                          row * BlockedMatrix::kLanes);
    const size_t value = 64 / static_cast<size_t>(matrix.block_columns());
    for (size_t i = static_cast<size_t>(41 % matrix.block_columns()) * value; i < 64; ++i)
      EXPECT_EQ(line[i], std::byte{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, BlockedMatrixOf,
                         ::testing::Values(Precision::kFloat32, Precision::kBFloat16));

TEST(BFloat16, RoundsToNearestEvenAndKeepsSpecials) {
  EXPECT_EQ(ToBFloat16(1.0f), 0x3F80);
  EXPECT_EQ(ToBFloat16(1.0f + 0x1p-8f), 0x3F80);             // a tie, to even
  EXPECT_EQ(ToBFloat16(1.0f + 3 * 0x1p-8f), 0x3F82);         // a tie, to even
  EXPECT_EQ(ToBFloat16(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81);  // more than half
  EXPECT_EQ(ToBFloat16(-0.0f), 0x8000);
  EXPECT_EQ(ToBFloat16(std::numeric_limits<float>::max()), 0x7F80);  // infinity
  EXPECT_EQ(ToBFloat16(-std::numeric_limits<float>::infinity()), 0xFF80);
  // Also NaN whose mantissa has only low bits.
  EXPECT_TRUE(std::isnan(FromBFloat16(ToBFloat16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(FromBFloat16(ToBFloat16(std::bit_cast<float>(0xFFFFFFFFu)))));
  for (uint32_t bits = 0; bits < 0x7F80; ++bits)
    ASSERT_EQ(ToBFloat16(FromBFloat16(static_cast<uint16_t>(bits))), bits);
}

TEST(BlockedMatrix, ColumnsCanBeCopiedToOtherPlaces) {
  std::vector<float> values(2 * 40);
  std::iota(values.begin(), values.end(), 0.0f);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    BlockedMatrix to(2, 100, precision);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t column = 0; column < 100; ++column) to.Set(row, column, 0);
    to.SetColumns(7, Blocked(values, 2, 40, precision), 3, 36);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t column = 0; column < 100; ++column)
        EXPECT_EQ(to.at(row, column),
                  column < 7 || column >= 43 ? 0.0f : static_cast<float>(row * 40 + column - 4));
  }
}

}  // namespace
}  // namespace renzan
