#include "renzan/optim/gradient_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

double Sum(std::vector<double> terms) { return TreeSum(terms); }

TEST(GradientNorm, IsTheSumOfSquaresOnAnyTeam) {
  for (const size_t n : {0u, 1u, 17u, 4096u, 50001u}) {
    std::vector<float> x(n);
    double expected = 0;
    for (size_t i = 0; i < n; ++i) {
      x[i] = Philox::Uniform(Philox::Draw(1, i)[0]) - 0.5f;
      expected += double{x[i]} * double{x[i]};
    }
    ThreadPool one(1);
    const double sum = SumOfSquares(one, x);
    EXPECT_NEAR(sum, expected, 1e-12 * (1 + expected));
    for (int threads : {2, 3, 5}) {
      ThreadPool pool(threads);
      EXPECT_EQ(SumOfSquares(pool, x), sum) << threads << " threads";
    }
  }
}

TEST(GradientNorm, SquaresNeitherOverflowNorUnderflow) {
  ThreadPool pool(1);
  EXPECT_EQ(SumOfSquares(pool, std::vector<float>{0x1.0p100f}), 0x1.0p200);
  EXPECT_EQ(SumOfSquares(pool, std::vector<float>{0x1.0p-100f}), 0x1.0p-200);
}

TEST(GradientNorm, TermsAreAddedByABalancedTree) {
  // ((a + b) + (c + d)) + e, with values for which any other order rounds differently.
  const double big = 0x1.0p53;
  EXPECT_EQ(Sum({big, 1, 1, 1, 1}), ((big + 1) + (1.0 + 1.0)) + 1);
  EXPECT_NE(Sum({big, 1, 1, 1, 1}), (((big + 1) + 1) + 1) + 1);
  EXPECT_EQ(Sum({}), 0);
  EXPECT_EQ(Sum({3}), 3);
}

TEST(GradientNorm, ClippingScalesOnlyGradientsAboveTheLimit) {
  EXPECT_EQ(ClipFactor(0, 1), 1.0f);
  EXPECT_EQ(ClipFactor(0.81, 1), 1.0f);
  EXPECT_FLOAT_EQ(ClipFactor(16, 1), static_cast<float>(1 / (4 + 1e-6)));
  EXPECT_TRUE(std::isnan(ClipFactor(std::numeric_limits<double>::infinity(), 1)));
  EXPECT_TRUE(std::isnan(ClipFactor(std::numeric_limits<double>::quiet_NaN(), 1)));
}

}  // namespace
}  // namespace renzan
