#include "renzan/model/blocks/block.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(BufferLayout, SaysWhichColumnsTakeItsMemory) {
  BufferLayout layout(Precision::kBFloat16);  // with 32 columns in a block
  layout.Add(33);
  layout.Add(17, Precision::kFloat32);  // two blocks of 16
  layout.Add(5, Precision::kBFloat16, 3);
  EXPECT_EQ(layout.columns(), (std::vector<int64_t>{64, 64, 96}));
  const std::vector<BlockedMatrix> matrices = layout.Make(4);
  EXPECT_EQ(matrices[1].precision(), Precision::kFloat32);
  EXPECT_EQ(matrices[2].rows(), 12);
  EXPECT_EQ(matrices[2].columns(), 5);
}

TEST(BufferLayout, SharesARowOfTheLargestSize) {
  BufferLayout layout(Precision::kBFloat16);
  const size_t first = layout.AddRow(3), shared = layout.ShareRow(20), last = layout.AddRow(5);
  EXPECT_EQ(layout.ShareRow(30), shared);
  EXPECT_EQ(layout.ShareRow(10), shared);
  std::vector<AlignedBuffer> rows = layout.MakeRows();
  std::vector<int64_t> sizes;
  for (const AlignedBuffer& row : rows) sizes.push_back(static_cast<int64_t>(row.size()));
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 30, 5}));
  EXPECT_EQ(sizes, layout.rows());
  EXPECT_EQ((std::vector<size_t>{first, shared, last}), (std::vector<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace renzan
