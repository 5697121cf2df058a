#include "renzan/base/blocked_matrix.h"

#include <gtest/gtest.h>

#include <numeric>

#include "renzan/base/blocked_matrix_testing.h"

namespace renzan {
namespace {

TEST(BlockedMatrix, RowsMayBeginAndEndAnywhere) {
  const int64_t rows = 3, columns = 50;
  for (const int64_t begin : {0, 5, 16, 30}) {
    for (const int64_t n : {0, 1, 11, 16, 20}) {
      std::vector<float> expected(rows * columns, -1.0f), values(static_cast<size_t>(n));
      std::iota(values.begin(), values.end(), 1.0f);
      BlockedMatrix matrix = Blocked(expected, rows, columns);
      matrix.SetRow(1, begin, values.data(), n);
      std::copy(values.begin(), values.end(), expected.begin() + columns + begin);
      EXPECT_EQ(RowMajor(matrix), expected);
      std::vector<float> back(static_cast<size_t>(n));
      matrix.GetRow(1, begin, back.data(), n);
      EXPECT_EQ(back, values);
    }
  }
}

TEST(BlockedMatrix, ColumnsCanBeCopiedToOtherPlaces) {
  std::vector<float> values(2 * 40);
  std::iota(values.begin(), values.end(), 0.0f);
  BlockedMatrix to(2, 60);
  to.SetColumns(7, Blocked(values, 2, 40), 3, 30);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t column = 0; column < 60; ++column)
      EXPECT_EQ(to.at(row, column),
                column < 7 || column >= 37 ? 0.0f : static_cast<float>(row * 40 + column - 4));
}

}  // namespace
}  // namespace renzan
