#include "renzan/nn/mlp.h"

#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/matmul.h"
#include "renzan/nn/testing.h"

namespace renzan {
namespace {

TEST(Matmul, AgreesWithTheReference) {
  for (int64_t m : {1, 3, 32}) {
    for (int64_t n : {1, 7, 33}) {
      for (int64_t k : {1, 5, 64}) {
        for (bool ta : {false, true}) {
          for (bool tb : {false, true}) {
            const auto a = RandomValues(static_cast<size_t>(m * k), 1);
            const auto b = RandomValues(static_cast<size_t>(k * n), 2);
            std::vector<float> c(static_cast<size_t>(m * n), 1.0f);
            Matmul(ta ? Transpose::kYes : Transpose::kNo, tb ? Transpose::kYes : Transpose::kNo, m,
                   n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, 1.0f, c.data(), n);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                double sum = 1;
                for (int64_t l = 0; l < k; ++l)
                  sum += double{a[static_cast<size_t>(ta ? l * m + i : i * k + l)]} *
                         double{b[static_cast<size_t>(tb ? j * k + l : l * n + j)]};
                ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, 1e-4);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Elementwise, SumRowsIsInRowOrder) {
  const auto x = RandomValues(5 * 19, 3);
  std::vector<float> sum(17);
  SumRows(x.data(), 5, 17, 19, sum.data());
  for (size_t c = 0; c < 17; ++c) {
    float expected = 0;
    for (size_t r = 0; r < 5; ++r) expected += x[r * 19 + c];
    EXPECT_EQ(sum[c], expected);
  }
}

class MlpGradients : public ::testing::TestWithParam<Mlp::LastLayer> {};

TEST_P(MlpGradients, AgreeWithFiniteDifferences) {
  ParameterLayout layout;
  const Mlp mlp("mlp", {5, 9, 7, 3}, GetParam(), &layout);
  const int64_t n = 4, x_stride = 6, y_stride = 8;
  AlignedBuffer parameters(static_cast<size_t>(layout.size()));
  layout.Initialize(11, parameters.span());
  auto x = RandomValues(n * x_stride, 4);
  const auto weights = RandomValues(n * 3, 5);  // loss = Σ weights ⊙ y
  std::vector<float> y(n * y_stride);
  Mlp::Workspace workspace = mlp.MakeWorkspace(n);
  const auto loss = [&] {
    mlp.Forward(parameters.data(), n, x.data(), x_stride, y.data(), y_stride, &workspace);
    double sum = 0;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < 3; ++c)
        sum += double{weights[static_cast<size_t>(r * 3 + c)]} *
               double{y[static_cast<size_t>(r * y_stride + c)]};
    return sum;
  };
  loss();
  auto dy = weights;
  AlignedBuffer gradients(parameters.size());
  std::vector<float> dx(n * x_stride);
  mlp.Backward(parameters.data(), n, x.data(), x_stride, y.data(), y_stride, dy.data(), 3,
               gradients.data(), dx.data(), x_stride, &workspace);
  for (const Parameter& p : layout.parameters()) {
    const size_t offset = static_cast<size_t>(p.offset), size = static_cast<size_t>(p.size);
    EXPECT_LT(GradientError(parameters.span().subspan(offset, size),
                            gradients.span().subspan(offset, size), loss),
              2e-3)
        << p.name;
  }
  EXPECT_LT(GradientError(x, dx, loss), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(All, MlpGradients,
                         ::testing::Values(Mlp::LastLayer::kRelu, Mlp::LastLayer::kLinear));

TEST(Parameters, InitialValuesHaveTheStatedSpread) {
  ParameterLayout layout;
  layout.Add("w", {300, 200}, Initializer::kXavierNormal);
  AlignedBuffer values(static_cast<size_t>(layout.size()));
  layout.Initialize(1, values.span());
  double squares = 0;
  for (float v : values.span()) squares += double{v} * double{v};
  EXPECT_NEAR(squares / 60000, 2.0 / 500, 1e-4);
}

}  // namespace
}  // namespace renzan
