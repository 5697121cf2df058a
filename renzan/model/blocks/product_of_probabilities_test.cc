#include "renzan/model/blocks/product_of_probabilities.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

double Probability(double logit) { return 1 / (1 + std::exp(-logit)); }

TEST(ProductOfProbabilities, IsTheLogitOfTheProduct) {
  for (const size_t factors : {2, 3, 5}) {
    BlockAlone product(ProductOfProbabilities{}, std::vector<Shape>(factors, Shape{{"a", 1}}));
    const std::vector<float> y = product.Output();
    for (size_t sample = 0; sample < y.size(); ++sample) {
      double p = 1;
      for (const std::vector<float>& input : product.inputs) p *= Probability(input[sample]);
      EXPECT_NEAR(double{y[sample]}, std::log(p / (1 - p)), 1e-6);
    }
    product.ExpectGradients();
  }
}

TEST(ProductOfProbabilities, IsExactForProbabilitiesNearZeroAndOne) {
  BlockAlone product(ProductOfProbabilities{}, {{{"a", 1}}, {{"b", 1}}}, 6);
  product.inputs = {{60, 1000, -1000, 1000, -90, 5}, {60, 1000, -1000, -3, -80, 1e5f}};
  const std::vector<float> y = product.Output();
  const float expected[] = {60 - std::log(2.0f), 1000 - std::log(2.0f), -2000, -3, -170, 5};
  for (size_t i = 0; i < y.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]) << i;
}

TEST(ProductOfProbabilities, TakesLogits) {
  EXPECT_THROW(BlockAlone(ProductOfProbabilities{}, {{{"a", 1}}}), Error);
  EXPECT_THROW(BlockAlone(ProductOfProbabilities{}, {{{"a", 1}}, {{"b", 2}}}), Error);
}

}  // namespace
}  // namespace renzan
