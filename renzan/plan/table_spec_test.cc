#include "renzan/plan/table_spec.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(TableSpec, BlocksHoldEveryRowOnce) {
  for (const int64_t rows : {8, 9, 15, 100}) {
    const TableSpec table{.num_embeddings = rows, .embedding_dim = 4, .row_blocks = 8};
    int64_t sum = 0;
    for (int block = 0; block < 8; ++block) {
      int64_t count = 0;
      for (int64_t row = block; row < rows; row += 8) ++count;
      EXPECT_EQ(table.rows_of_block(block), count);
      sum += count;
    }
    EXPECT_EQ(sum, rows);
  }
}

TEST(DefaultRowBlocks, FollowOnlyTheTablesSize) {
  EXPECT_EQ(DefaultRowBlocks(3, 16), 1);
  EXPECT_EQ(DefaultRowBlocks(2'000'000, 16), 1);      // 122 MiB
  EXPECT_EQ(DefaultRowBlocks(10'000'000, 16), 8);     // 610 MiB
  EXPECT_EQ(DefaultRowBlocks(40'000'000, 128), 256);  // 19 GiB
  EXPECT_EQ(DefaultRowBlocks(int64_t{1} << 40, 128), 1024);
  EXPECT_EQ(DefaultRowBlocks(2, int64_t{1} << 30), 2);  // at most one for each row
  EXPECT_EQ(MaxRowBlocks(1), 1);
  EXPECT_EQ(MaxRowBlocks(7), 4);
}

}  // namespace
}  // namespace renzan
