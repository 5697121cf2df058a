#include "renzan/model/blocks/mlp.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/block_testing.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

class MlpBlock : public ::testing::TestWithParam<bool> {};  // whether the last layer is linear

TEST_P(MlpBlock, ComputesItsDefinition) {
  BlockAlone mlp(Mlp{.layers = {3, 2}, .linear_output = GetParam()}, {{{"x", 2}, {"z", 3}}});
  const std::vector<float> y = mlp.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    std::vector<double> x(mlp.inputs[0].begin() + sample * 5,
                          mlp.inputs[0].begin() + sample * 5 + 5);
    for (size_t layer = 0; layer < 2; ++layer) {
      const auto weight = mlp.parameter(fmt::format("{}.weight", layer));
      const auto bias = mlp.parameter(fmt::format("{}.bias", layer));
      std::vector<double> next;
      for (size_t out = 0; out < bias.size(); ++out) {
        double sum = double{bias[out]};
        for (size_t in = 0; in < x.size(); ++in) sum += double{weight[out * x.size() + in]} * x[in];
        next.push_back(layer == 1 && GetParam() ? sum : std::max(sum, 0.0));
      }
      x = next;
    }
    for (size_t out = 0; out < 2; ++out) EXPECT_NEAR(double{y[sample * 2 + out]}, x[out], 1e-5);
  }
}

TEST_P(MlpBlock, GradientsAgreeWithFiniteDifferences) {
  for (const std::string& activation : ActivationNames()) {
    SCOPED_TRACE(activation);
    // With more layers, what sigmoids leave of a gradient is within the rounding of the loss.
    const Mlp options{
        .layers = activation == "relu" ? std::vector<int64_t>{9, 7, 3} : std::vector<int64_t>{9, 3},
        .activation = activation,
        .linear_output = GetParam()};
    BlockAlone(options, {{{"x", 5}}}, 8).ExpectGradients();
    Mlp with_dropout = options;
    with_dropout.dropout = 0.3;
    BlockAlone(with_dropout, {{{"x", 5}}}, 8, TrainingPosition{3, 12}).ExpectGradients();
  }
}

INSTANTIATE_TEST_SUITE_P(All, MlpBlock, ::testing::Bool());

}  // namespace
}  // namespace renzan
