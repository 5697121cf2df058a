#include "renzan/model/blocks/first_order.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

const std::vector<Shape> kRows = {{{"a", 3}, {"b", 1}, {"c", 2}}};

TEST(FirstOrderBlock, SumsLastColumnsAndABias) {
  BlockAlone first(FirstOrder{}, kRows);
  const std::vector<float> y = first.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    const float* x = first.inputs[0].data() + sample * 6;
    EXPECT_NEAR(double{y[sample]},
                double{first.parameter("bias")[0]} + double{x[2]} + double{x[3]} + double{x[5]},
                1e-6);
  }
  first.ExpectGradients();
}

TEST(FactorsBlock, AreAllOtherColumns) {
  BlockAlone factors(Factors{}, {{{"a", 3}, {"b", 2}}});
  const std::vector<float> y = factors.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    const float* x = factors.inputs[0].data() + sample * 5;
    EXPECT_EQ(std::vector<float>(y.data() + sample * 3, y.data() + sample * 3 + 3),
              (std::vector<float>{x[0], x[1], x[3]}));
  }
  factors.ExpectGradients();
  EXPECT_THROW(BlockAlone(Factors{}, kRows), Error) << "b has no factors";
}

}  // namespace
}  // namespace renzan
