#include "renzan/model/blocks/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "renzan/model/blocks/batch_norm.h"
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

// Batch normalization subtracts a bias again, together with the mean.
std::function<bool(const std::string&)> BiasesBefore(const std::string& normalization,
                                                     bool last_is_linear, int last) {
  return [=](const std::string& name) {
    return normalization == "batch" && name.ends_with(".bias") &&
           !(last_is_linear && name == fmt::format("block.{}.bias", last));
  };
}

TEST_P(MlpBlock, NormalizesBeforeTheActivation) {
  for (const std::string normalization : {"batch", "layer"})
    for (const double dropout : {0.0, 0.3}) {
      SCOPED_TRACE(normalization);
      const Mlp options{.layers = {5, 4},
                        .activation = "tanh",
                        .linear_output = GetParam(),
                        .dropout = dropout,
                        .normalization = normalization};
      BlockAlone mlp(options, {{{"x", 3}}}, 8, TrainingPosition{3, 12});
      EXPECT_EQ(mlp.parameter("0.norm.gamma").size(), 5u);
      size_t normalized = 0;  // layers
      for (const Parameter& each : mlp.layout().parameters())
        normalized += each.name.ends_with(".norm.gamma");
      EXPECT_EQ(normalized, GetParam() ? 1u : 2u);
      mlp.ExpectGradients(BiasesBefore(normalization, GetParam(), 1));
    }
}

// What is dropped depends on the sample and its position, not on the positions of others, in whose
// rows it comes; and the newest position alone loses what it loses among all. One block does it
// all, so that nothing of an earlier pass may be left.
TEST(Mlp, DropoutOfASequenceDependsOnItsOwnSampleAlone) {
  const Shape sequence = {{"a", 3}, {"b", 3}, {"c", 3}};
  const Mlp options{.layers = {8, 8}, .activation = "tanh", .dropout = 0.5, .per_vector = true};
  const auto of_samples = [](const std::vector<float>& output, size_t first, size_t last) {
    const auto each = static_cast<ptrdiff_t>(output.size() / 4);
    return std::vector<float>(output.begin() + static_cast<ptrdiff_t>(first) * each,
                              output.begin() + static_cast<ptrdiff_t>(last) * each);
  };
  BlockAlone mlp(options, {sequence}, 4, TrainingPosition{3, 12});
  mlp.SetLengths({3, 3, 1, 2});
  const std::vector<float> full = mlp.Output();
  mlp.SetLengths({0, 3, 1, 2});
  EXPECT_EQ(of_samples(mlp.Output(), 1, 4), of_samples(full, 1, 4));
  mlp.SetLengths({0, 0, 1, 2});
  EXPECT_EQ(of_samples(mlp.Output(), 2, 4), of_samples(full, 2, 4));
  mlp.GiveOnlyNewest();
  const std::vector<float> newest = of_samples(mlp.Output(), 2, 3);
  EXPECT_EQ(newest, of_samples(full, 2, 3));  // its only position
  EXPECT_NE(newest, std::vector<float>(newest.size(), 0.0f));
}

// The MLP with ReLU, which no product applies then, is what its parts are one after the other.
TEST(Mlp, IsLinearLayersNormalizationAndActivation) {
  const Shape x = {{"x", 6}};
  Mlp options{.layers = {5}, .normalization = "batch"};
  BlockAlone mlp(options, {x}, 8, TrainingPosition{3, 12});
  BlockAlone sums(Mlp{.layers = {5}, .linear_output = true}, {x}, 8);
  BlockAlone norm(BatchNorm{}, {{{"sums", 5}}}, 8, TrainingPosition{3, 12});
  const auto copy = [&](BlockAlone& to, const std::string& name, const std::string& from) {
    std::ranges::copy(mlp.parameter(from), to.parameter(name).begin());
  };
  for (const char* name : {"0.weight", "0.bias"}) copy(sums, name, name);
  for (const char* name : {"gamma", "beta"}) copy(norm, name, std::string("0.norm.") + name);
  sums.inputs = mlp.inputs;
  norm.inputs[0] = sums.Output();
  std::vector<float> expected = norm.Output();
  for (float& value : expected) value = std::max(value, 0.0f);
  EXPECT_EQ(mlp.Output(), expected);
}

TEST_P(MlpBlock, AddsInputsOfLaterLayers) {
  const Mlp plain{.layers = {4, 4}, .activation = "tanh", .linear_output = GetParam()};
  Mlp residual = plain;
  residual.residual = true;
  const Shape x = {{"x", 4}};
  const std::vector<float> y = BlockAlone(residual, {x}, 8).Output();
  BlockAlone whole(plain, {x}, 8);
  Mlp first = plain;
  first.layers = {4};
  first.linear_output = false;
  BlockAlone hidden(first, {x}, 8);
  for (const char* name : {"0.weight", "0.bias"})
    std::ranges::copy(whole.parameter(name), hidden.parameter(name).begin());
  const std::vector<float> without = whole.Output(), input = hidden.Output();
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(double{y[i]},
                GetParam() ? double{without[i]}
                           : std::tanh(std::atanh(double{without[i]}) + double{input[i]}),
                1e-5);
  for (const std::string normalization : {"none", "batch", "layer"}) {
    residual.normalization = normalization;
    residual.layers = {4, 4, 4};
    residual.dropout = 0.2;
    BlockAlone(residual, {{{"x", 7}}}, 8, TrainingPosition{3, 12})
        .ExpectGradients(BiasesBefore(normalization, GetParam(), 2));
  }
}

TEST(Mlp, RefusesLayersThatItCannotAddOrNormalize) {
  const Shape x = {{"x", 7}};
  EXPECT_EQ(Refusal(Mlp{.layers = {6, 4, 4}, .residual = true}, {x}),
            "block block adds the inputs of its layers to their sums (residual), so all must have "
            "one width, but layer 1 takes 6 and gives 4");
  EXPECT_EQ(Refusal(Mlp{.layers = {6, 6, 1}, .linear_output = true, .residual = true}, {x}), "");
  EXPECT_EQ(Refusal(Mlp{.layers = {4, 1}, .normalization = "layer"}, {x}),
            "block block normalizes each layer by itself (layer), but one has a single unit");
}

INSTANTIATE_TEST_SUITE_P(All, MlpBlock, ::testing::Bool());

}  // namespace
}  // namespace renzan
