#include "renzan/model/blocks/fm.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(FmBlock, SumsTheProductsOfAllPairs) {
  BlockAlone fm(Fm{}, {{{"a", 3}, {"b", 3}, {"c", 3}, {"d", 3}}});
  const std::vector<float> y = fm.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    const float* x = fm.inputs[0].data() + sample * 12;
    double sum = 0;
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < i; ++j)
        for (size_t k = 0; k < 3; ++k) sum += double{x[i * 3 + k]} * double{x[j * 3 + k]};
    EXPECT_NEAR(double{y[sample]}, sum, 1e-5);
  }
  fm.ExpectGradients();
  EXPECT_THROW(BlockAlone(Fm{}, {{{"a", 3}, {"b", 4}}}), Error);
}

}  // namespace
}  // namespace renzan
