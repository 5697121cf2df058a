#include "renzan/model/blocks/multiply.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(MultiplyBlock, MultipliesElementByElement) {
  const Shape shape = {{"x", 20}};
  BlockAlone product(Product{}, {shape, shape});
  const std::vector<float> y = product.Output();
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], product.inputs[0][i] * product.inputs[1][i]);
  product.ExpectGradients();
  EXPECT_THROW(BlockAlone(Product{}, {shape, {{"y", 2}}}), Error);
  EXPECT_THROW(BlockAlone(Product{}, {shape}), Error);
}

}  // namespace
}  // namespace renzan
