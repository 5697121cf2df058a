#include "renzan/model/pair_products.h"

#include <gtest/gtest.h>

#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

BlockedMatrix Random(int64_t rows, int64_t columns, uint64_t seed, Precision precision) {
  return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns, precision);
}

// The last 5 of 21 rows, with one, an even and an odd number of values to multiply.
constexpr int64_t kAll = 21, kFirst = 16, kRest = kAll - kFirst, kOthers = 7;

void ExpectProducts(int64_t columns, bool with_itself, Precision precision) {
  const BlockedMatrix x = Random(kAll, columns, 1, precision);
  const BlockedMatrix other = Random(kAll, kOthers, 2, precision);
  const BlockedMatrix& y = with_itself ? x : other;
  const int64_t width = y.columns();
  const BlockedMatrix d_pairs = Random(kRest, columns * width, 3, precision);
  BlockedMatrix expected(kRest, columns * width, precision);
  BlockedMatrix d_x = Random(kRest, columns, 4, precision);
  BlockedMatrix d_y = Random(kAll, width, 5, Precision::kFloat32);
  BlockedMatrix expected_d_x = CopyOf(d_x), expected_d_y = CopyOf(d_y);
  for (int64_t row = 0; row < kRest; ++row) {
    std::vector<float> sums(static_cast<size_t>(columns));
    if (!with_itself) d_x.GetRow(row, 0, sums.data(), columns);
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = 0; j < width; ++j) {
        expected.Set(row, i * width + j, x.at(kFirst + row, i) * y.at(kFirst + row, j));
        const float d = d_pairs.at(row, i * width + j);
        sums[static_cast<size_t>(i)] += d * y.at(kFirst + row, j);
        expected_d_y.Set(kFirst + row, j,
                         expected_d_y.at(kFirst + row, j) + d * x.at(kFirst + row, i));
      }
    for (int64_t i = 0; i < columns; ++i) {
      const float sum = sums[static_cast<size_t>(i)];
      expected_d_x.Set(row, i, sum);
      if (with_itself) expected_d_y.Set(kFirst + row, i, expected_d_y.at(kFirst + row, i) + sum);
    }
  }
  testing::OnEveryInstructionSet([&] {
    std::vector<float> scratch(static_cast<size_t>(PairScratch(columns, width)));
    BlockedMatrix pairs(kRest, columns * width, precision), its_d_x = CopyOf(d_x),
                                                            its_d_y = CopyOf(d_y);
    PairProducts(x, y, kFirst, scratch.data(), &pairs);
    EXPECT_EQ(RowMajor(pairs), RowMajor(expected));
    PairProductsBackward(d_pairs, x, y, kFirst, scratch.data(), with_itself ? nullptr : &its_d_x,
                         &its_d_y);
    if (!with_itself) {
      EXPECT_EQ(RowMajor(its_d_x), RowMajor(expected_d_x));
    }
    EXPECT_EQ(RowMajor(its_d_y), RowMajor(expected_d_y));
  });
}

TEST(PairProducts, HaveTheSameBitsOnEveryInstructionSet) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16})
    for (const int64_t columns : {1, 18, 39})
      for (const bool with_itself : {false, true}) ExpectProducts(columns, with_itself, precision);
}

}  // namespace
}  // namespace renzan
