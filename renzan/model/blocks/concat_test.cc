#include "renzan/model/blocks/concat.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"
#include "renzan/model/blocks/zeros.h"

namespace renzan {
namespace {

TEST(ConcatBlock, HasAllVectorsInOrder) {
  BlockAlone concat(Concat{}, {{{"a", 2}, {"b", 17}}, {{"c", 3}}});
  const std::vector<float> y = concat.Output();
  for (size_t sample = 0; sample < 4; ++sample)
    for (size_t i = 0; i < 22; ++i)
      EXPECT_EQ(y[sample * 22 + i],
                i < 19 ? concat.inputs[0][sample * 19 + i] : concat.inputs[1][sample * 3 + i - 19]);
  ASSERT_EQ(concat.block().shape().size(), 3u);
  EXPECT_EQ(concat.block().shape()[1].name, "b");
  EXPECT_EQ(concat.block().ColumnOf(1), 19);
  concat.ExpectGradients();
}

TEST(ZerosBlock, AreZero) {
  EXPECT_EQ(BlockAlone(Zeros{3}, {}, 2).Output(), std::vector<float>(6, 0.0f));
}

}  // namespace
}  // namespace renzan
