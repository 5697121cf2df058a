#include "renzan/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace renzan {
namespace {

std::vector<int64_t> RowsOf(const SampleOrder& order) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < order.num_rows(); ++i) rows.push_back(order.Row(i));
  return rows;
}

TEST(SampleOrder, EveryRowExactlyOnce) {
  const ShuffleOptions options[] = {{},
                                    {.block_rows = 1, .window_blocks = 1},
                                    {.block_rows = 4, .window_blocks = 3},
                                    {.block_rows = 7, .window_blocks = 5}};
  for (const ShuffleOptions& option : options) {
    for (int64_t rows : {0,  1,   2,   3,   5,   6,    7,     8,     34,    35,    36,
                         37, 100, 511, 512, 513, 1000, 65536, 65537, 66047, 66048, 100003}) {
      for (uint64_t seed : {1, 2}) {
        const int64_t begin = 11 * static_cast<int64_t>(seed);
        const SampleOrder order(seed, 3, begin, begin + rows, option);
        std::vector<int> seen(static_cast<size_t>(rows));
        for (int64_t row : RowsOf(order)) {
          ASSERT_GE(row, begin);
          ASSERT_LT(row, begin + rows);
          ASSERT_EQ(seen[static_cast<size_t>(row - begin)]++, 0)
              << "row " << row << " of " << rows << " twice, blocks of " << option.block_rows;
        }
      }
    }
  }
}

TEST(SampleOrder, OffIsTheIdentity) {
  const SampleOrder order(1, 0, 5, 1000, {.enabled = false});
  for (int64_t i = 0; i < order.num_rows(); ++i) EXPECT_EQ(order.Row(i), 5 + i);
}

TEST(SampleOrder, SeedAndEpochChangeIt) {
  const auto rows = [](uint64_t seed, int64_t epoch) {
    return RowsOf(SampleOrder(seed, epoch, 0, 5000));
  };
  EXPECT_EQ(rows(1, 0), rows(1, 0));
  EXPECT_NE(rows(1, 0), rows(2, 0));
  EXPECT_NE(rows(1, 0), rows(1, 1));
}

TEST(SampleOrder, AWindowTouchesOnlyItsBlocks) {
  const ShuffleOptions options{.block_rows = 16, .window_blocks = 4};
  const int64_t rows = 16 * 40 + 3;
  const SampleOrder order(9, 0, 0, rows, options);
  for (int64_t window = 0; window < rows / 64; ++window) {
    std::vector<int> in_block(41);
    for (int64_t i = 64 * window; i < 64 * (window + 1); ++i)
      ++in_block[static_cast<size_t>(order.Row(i) / 16)];
    int blocks_touched = 0;
    for (int count : in_block) {
      EXPECT_TRUE(count == 0 || count == 16);
      blocks_touched += count > 0;
    }
    EXPECT_EQ(blocks_touched, 4);
    EXPECT_EQ(in_block[40], 0) << "the short block belongs to the last window";
  }
}

// Blocks that windows name without visiting their rows, compared with the rows.
TEST(SampleOrder, WindowsNameTheirBlocks) {
  for (const bool enabled : {true, false}) {
    for (const int64_t rows : {1, 5, 16, 17, 63, 64, 65, 16 * 40, 16 * 40 + 3, 16 * 43 + 15}) {
      for (const int64_t begin : {0, 1000}) {
        SCOPED_TRACE(::testing::Message() << enabled << " " << rows << " " << begin);
        const SampleOrder order(9, 2, begin, begin + rows,
                                {.enabled = enabled, .block_rows = 16, .window_blocks = 4});
        EXPECT_EQ(order.window_rows(), 64);
        ASSERT_EQ(order.num_windows(), (rows + 63) / 64);
        ASSERT_EQ(order.num_blocks(), (rows + 15) / 16);
        int64_t row = begin;  // blocks cover the range without gaps
        for (int64_t block = 0; block < order.num_blocks(); ++block) {
          const auto [first, end] = order.RowsOfBlock(block);
          EXPECT_EQ(first, row);
          EXPECT_GT(end, first);
          for (; row < end; ++row) EXPECT_EQ(order.BlockOf(row), block);
        }
        EXPECT_EQ(row, begin + rows);
        for (int64_t window = 0; window < order.num_windows(); ++window) {
          std::set<int64_t> expected;
          for (int64_t i = 64 * window; i < std::min(64 * (window + 1), rows); ++i)
            expected.insert(order.BlockOf(order.Row(i)));
          const std::vector<int64_t> blocks = order.BlocksOfWindow(window);
          EXPECT_EQ(std::set<int64_t>(blocks.begin(), blocks.end()), expected);
          EXPECT_EQ(blocks.size(), expected.size());
          for (const int64_t block : blocks) EXPECT_EQ(order.WindowOfBlock(block), window);
        }
      }
    }
  }
}

TEST(KeyedPermutation, HasAnInverse) {
  for (const int64_t size : {1, 2, 3, 5, 16, 17, 1000, 65537}) {
    for (const uint64_t tweak : {0, 7}) {
      const KeyedPermutation permutation(12345, tweak, size);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(permutation.Inverse(permutation(i)), i) << "of " << size;
        ASSERT_EQ(permutation(permutation.Inverse(i)), i) << "of " << size;
      }
    }
  }
  // More than can be tried.
  const int64_t large = int64_t{1} << 40;
  const KeyedPermutation permutation(12345, 0, large - 12345);
  for (const int64_t i : {int64_t{0}, int64_t{77}, large / 3, large - 12346})
    EXPECT_EQ(permutation.Inverse(permutation(i)), i);
}

TEST(SampleOrder, BlocksComeFromTheWholeRange) {
  const ShuffleOptions options{.block_rows = 16, .window_blocks = 4};
  const SampleOrder order(9, 0, 0, 16 * 400, options);
  int64_t at_home = 0;  // rows that stayed in their window
  for (int64_t i = 0; i < order.num_rows(); ++i) at_home += order.Row(i) / 64 == i / 64;
  EXPECT_LT(at_home, order.num_rows() / 20);
}

// The mean distance between a position and its row is a third of the range for a random
// permutation, and neighbours are independent.
TEST(SampleOrder, LooksRandom) {
  const int64_t rows = 60000;  // one window
  const SampleOrder order(4, 0, 0, rows);
  double distance = 0, product = 0;
  const double mean = (rows - 1) / 2.0;
  for (int64_t i = 0; i < rows; ++i) {
    distance += std::fabs(static_cast<double>(order.Row(i) - i));
    product += (static_cast<double>(order.Row(i)) - mean) *
               (static_cast<double>(order.Row((i + 1) % rows)) - mean);
  }
  EXPECT_NEAR(distance / static_cast<double>(rows) / static_cast<double>(rows), 1.0 / 3, 0.01);
  const double variance = static_cast<double>(rows) * static_cast<double>(rows) / 12;
  EXPECT_NEAR(product / static_cast<double>(rows) / variance, 0, 0.02);
}

TEST(SampleOrder, ManyRowsAreThoseOfEachPosition) {
  for (const bool shuffled : {true, false})
    for (const int64_t rows : {1, 5, 63, 64, 1000, 4096, 5003}) {
      const SampleOrder order(3, 1, 7, 7 + rows,
                              {.enabled = shuffled, .block_rows = 16, .window_blocks = 8});
      for (const int64_t first : {int64_t{0}, rows / 3, rows - 1}) {
        std::vector<int64_t> many = {-1}, expected = {-1};
        order.AppendRows(first, rows - first, &many);
        for (int64_t i = first; i < rows; ++i) expected.push_back(order.Row(i));
        EXPECT_EQ(many, expected) << rows << " from " << first;
      }
    }
}

}  // namespace
}  // namespace renzan
