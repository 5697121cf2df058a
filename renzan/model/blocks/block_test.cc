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

}  // namespace
}  // namespace renzan
