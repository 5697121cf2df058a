// Its gradients are checked by sequence_test.cc, with samples of all lengths.

#include "renzan/model/blocks/positions.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(PositionsBlock, CountsFromTheNewest) {
  const std::vector<int32_t> lengths = {3, 0, 1, 2};
  BlockAlone block(Positions{}, {{{"s.0", 2}, {"s.1", 2}, {"s.2", 2}}});
  block.SetLengths(lengths);
  const std::vector<float> y = block.Output();
  const auto weight = block.parameter("weight");
  ASSERT_EQ(weight.size(), 6u);
  for (size_t i = 0; i < lengths.size(); ++i)
    for (size_t c = 0; c < 6; ++c) {
      const size_t used = static_cast<size_t>(lengths[i]) * 2;
      EXPECT_EQ(y[i * 6 + c], c < used ? block.inputs[0][i * 6 + c] + weight[6 - used + c] : 0);
    }
}

TEST(PositionsBlock, RefusesVectorsOfSeveralDimensions) {
  EXPECT_EQ(Refusal(Positions{}, {{{"a", 2}, {"b", 3}}}),
            "block block takes vectors of one dimension, but its input has 2 vectors of 2, 3");
}

}  // namespace
}  // namespace renzan
