#include "renzan/model/blocks/sum.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(SumBlock, AddsItsInputs) {
  for (const int64_t width : {1, 5, 40}) {
    const Shape shape = {{"x", width}};
    BlockAlone sum(Sum{}, {shape, shape, shape});
    const std::vector<float> y = sum.Output();
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], sum.inputs[0][i] + sum.inputs[1][i] + sum.inputs[2][i]);
    sum.ExpectGradients();
  }
  EXPECT_THROW(BlockAlone(Sum{}, {{{"x", 1}}, {{"y", 2}}}), Error);
  EXPECT_THROW(BlockAlone(Sum{}, {}), Error);
}

}  // namespace
}  // namespace renzan
