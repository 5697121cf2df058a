#include "renzan/model/blocks/activation.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

TEST(ActivationBlock, IsAFunctionOfEachValue) {
  for (const std::string& name : ActivationNames()) {
    SCOPED_TRACE(name);
    BlockAlone block(ActivationFunction{name}, {{{"x", 3}, {"y", 17}}});
    const std::vector<float> y = block.Output();
    BlockedMatrix values(4, 20);
    Activate(ActivationNamed(name), Blocked(block.inputs[0], 4, 20), &values);
    EXPECT_EQ(y, RowMajor(values));
    EXPECT_EQ(block.block().shape().size(), 2u);
    block.ExpectGradients();
  }
}

}  // namespace
}  // namespace renzan
