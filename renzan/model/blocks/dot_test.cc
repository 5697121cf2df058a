#include "renzan/model/blocks/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(DotBlock, HasTheFirstVectorAndTheProductsOfAllPairs) {
  BlockAlone dot(Dot{}, {{{"a", 3}, {"b", 3}, {"c", 3}}});
  const std::vector<float> y = dot.Output();
  ASSERT_EQ(dot.columns(), 3 + 3);
  for (size_t sample = 0; sample < 4; ++sample) {
    const float* x = dot.inputs[0].data() + sample * 9;
    const auto product = [&](size_t i, size_t j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += double{x[i * 3 + k]} * double{x[j * 3 + k]};
      return sum;
    };
    const float* const row = y.data() + sample * 6;
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(row[k], x[k]);
    EXPECT_NEAR(double{row[3]}, product(1, 0), 1e-6);
    EXPECT_NEAR(double{row[4]}, product(2, 0), 1e-6);
    EXPECT_NEAR(double{row[5]}, product(2, 1), 1e-6);
  }
  dot.ExpectGradients();
}

TEST(DotBlock, NeedsVectorsOfOneDimension) {
  try {
    BlockAlone(Dot{}, {{{"a", 3}, {"b", 4}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_STREQ(error.what(),
                 "block block takes vectors of one dimension, but its input has 2 vectors of 3, 4");
  }
}

}  // namespace
}  // namespace renzan
