// Its gradients are checked by sequence_test.cc, with samples of all lengths.

#include "renzan/model/blocks/append.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(AppendBlock, PutsTheVectorBehindTheLastPosition) {
  const std::vector<int32_t> lengths = {3, 0, 1, 2};
  BlockAlone block(Append{}, {{{"s.0", 2}, {"s.1", 2}, {"s.2", 2}}, {{"x", 2}}});
  block.SetLengths(lengths);
  const std::vector<float> y = block.Output();
  ASSERT_EQ(y.size(), 4 * 8u);
  for (size_t i = 0; i < lengths.size(); ++i)
    for (size_t c = 0; c < 8; ++c) {
      const size_t used = static_cast<size_t>(lengths[i]) * 2;
      const float expected = c < used       ? block.inputs[0][i * 6 + c]
                             : c < used + 2 ? block.inputs[1][i * 2 + c - used]
                                            : 0;
      EXPECT_EQ(y[i * 8 + c], expected) << i << " " << c;
    }
}

TEST(AppendBlock, RefusesAnotherWidthAndOtherInputs) {
  const Shape sequence = {{"a", 3}, {"b", 3}};
  EXPECT_EQ(Refusal(Append{}, {sequence, {{"x", 2}}}),
            "block block appends 1 vector of 2 to 2 vectors of 3: they must have one width");
  EXPECT_EQ(Refusal(Append{}, {sequence}),
            "block block takes a sequence and a vector, but has 1 input");
}

}  // namespace
}  // namespace renzan
