#include "renzan/optim/optimizer_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/base/random_testing.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

class OptimizerSteps : public ::testing::TestWithParam<int64_t> {};

TEST_P(OptimizerSteps, AgreeWithTheirFormulas) {
  const int64_t dim = GetParam();
  const size_t n = static_cast<size_t>(dim);
  const auto g = RandomValues(n, 2), w0 = RandomValues(n, 3);
  const float lr = 0.1f, epsilon = 1e-8f;

  std::vector<float> w = w0;
  SgdStep(lr, g.data(), dim, w.data());
  for (size_t d = 0; d < n; ++d) EXPECT_EQ(w[d], w0[d] - lr * g[d]);

  w = w0;
  std::vector<float> s(n, 0.5f);
  AdagradStep(lr, epsilon, g.data(), dim, s.data(), w.data());
  for (size_t d = 0; d < n; ++d) {
    const float expected = 0.5f + g[d] * g[d];
    EXPECT_EQ(s[d], expected);
    EXPECT_EQ(w[d], w0[d] - lr * g[d] / (std::sqrt(expected) + epsilon));
  }

  w = w0;
  ScaleValues(0.75f, dim, w.data());
  for (size_t d = 0; d < n; ++d) EXPECT_EQ(w[d], w0[d] * 0.75f);
}

TEST_P(OptimizerSteps, BitsDoNotDependOnTheInstructionSet) {
  const int64_t dim = GetParam();
  const size_t n = static_cast<size_t>(dim);
  const auto results = [&] {
    const auto g = RandomValues(n, 2);
    auto w = RandomValues(n, 3), s = RandomValues(n, 4), m = RandomValues(n, 5);
    for (float& x : s) x = x * x;
    AdagradStep(0.1f, 1e-8f, g.data(), dim, s.data(), w.data());
    SgdStep(0.1f, s.data(), dim, w.data());
    AdamStep({0.1, 1e-8, 0.9, 0.999, 3}, g.data(), dim, m.data(), s.data(), w.data());
    ScaleValues(0.9f, dim, m.data());
    for (const auto* values : {&s, &m}) w.insert(w.end(), values->begin(), values->end());
    w.push_back(static_cast<float>(SumOfSquares(g.data(), dim)));
    return w;
  };
  const std::vector<float> expected = results();
  testing::OnEveryInstructionSet([&] { EXPECT_EQ(results(), expected); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, OptimizerSteps, ::testing::Values(1, 3, 8, 16, 17, 64, 100));

}  // namespace
}  // namespace renzan
