#include "renzan/nn/mlp.h"

#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

class MlpGradients : public ::testing::TestWithParam<Mlp::LastLayer> {};

TEST_P(MlpGradients, AgreeWithFiniteDifferences) {
  ParameterLayout layout;
  const Mlp mlp("mlp", {5, 9, 7, 3}, GetParam(), &layout);
  const int64_t n = 4;
  AlignedBuffer parameters(static_cast<size_t>(layout.size()));
  layout.Initialize(11, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(layout, parameters.span());
  auto x = RandomValues(n * 5, 4);
  const auto weights = RandomValues(n * 3, 5);  // loss = Σ weights ⊙ y
  Mlp::Workspace workspace = mlp.MakeWorkspace(n);
  const auto loss = [&] {
    packed.Pack(pool);
    mlp.Forward(packed, Blocked(x, n, 5), &workspace);
    const std::vector<float> y = RowMajor(workspace.output());
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += double{weights[i]} * double{y[i]};
    return sum;
  };
  loss();
  BlockedMatrix dy = Blocked(weights, n, 3), dx(n, 5);
  AlignedBuffer gradients(parameters.size());
  FlatGradients flat(gradients.data());
  mlp.Backward(packed, Blocked(x, n, 5), &dy, &flat, &dx, &workspace);
  for (const Parameter& p : layout.parameters()) {
    const size_t offset = static_cast<size_t>(p.offset), size = static_cast<size_t>(p.size);
    EXPECT_LT(GradientError(parameters.span().subspan(offset, size),
                            gradients.span().subspan(offset, size), loss),
              2e-3)
        << p.name;
  }
  EXPECT_LT(GradientError(x, RowMajor(dx), loss), 2e-3);
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
