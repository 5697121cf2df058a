// Every model's gradients against finite differences, through the loss.

#include "renzan/model/model.h"

#include <gtest/gtest.h>

#include "renzan/model/loss.h"
#include "renzan/model/metrics.h"
#include "renzan/nn/testing.h"

namespace renzan {
namespace {

struct Case {
  const char* type;
  int64_t num_dense, num_tables;
  double dropout = 0;
};

double MeanLoss(std::span<const float> logits, std::span<const float> labels) {
  BinaryMetrics metrics;
  metrics.Add(logits, labels);
  return metrics.LogLoss();
}

class Models : public testing::TestWithParam<Case> {};

TEST_P(Models, GradientsAgreeWithFiniteDifferences) {
  const int64_t n = 4, dim = 4;
  const auto model = MakeModel({.type = GetParam().type,
                                .num_dense = GetParam().num_dense,
                                .num_tables = GetParam().num_tables,
                                .embedding_dim = dim,
                                .bottom_mlp = {6},
                                .top_mlp = {5},
                                .cross_layers = 2,
                                .cross_rank = 3,
                                .dropout = {.rate = GetParam().dropout, .seed = 7}});
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(5, parameters.span());
  const auto workspace = model->MakeWorkspace(n);
  workspace->training = TrainingPosition{3, 12};
  const auto dense = RandomValues(workspace->dense.size(), 1);
  std::copy(dense.begin(), dense.end(), workspace->dense.data());
  const auto features = RandomValues(workspace->features.size(), 2);
  for (int64_t s = 0; s < n; ++s)
    for (int64_t i = dim; i < model->features_per_sample(); ++i) {
      const size_t at = static_cast<size_t>(s * model->features_per_sample() + i);
      workspace->features[at] = features[at];
    }
  const std::vector<float> labels = {1, 0, 0, 1};
  const auto loss = [&] {
    model->Forward(parameters.data(), n, workspace.get());
    BinaryCrossEntropyGradient(workspace->logits.span(), labels, n, workspace->d_logits.span());
    return MeanLoss(workspace->logits.span(), labels);
  };
  loss();
  AlignedBuffer gradients(parameters.size());
  model->Backward(parameters.data(), n, gradients.data(), workspace.get());
  EXPECT_LT(GradientError(parameters.span(), gradients.span(), loss, 2e-3f), 1e-2);

  // The pooled rows' gradients; vector 0 belongs to the bottom MLP.
  for (int64_t s = 0; s < n; ++s) {
    const size_t at = static_cast<size_t>(s * model->features_per_sample() + dim);
    const size_t size = static_cast<size_t>(model->features_per_sample() - dim);
    if (size == 0) continue;
    EXPECT_LT(GradientError(workspace->features.span().subspan(at, size),
                            workspace->d_features.span().subspan(at, size), loss, 2e-3f),
              1e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Models,
                         testing::Values(Case{"dlrm", 3, 5}, Case{"dlrm", 0, 4}, Case{"dlrm", 3, 0},
                                         Case{"dlrm_dcnv2", 3, 5}, Case{"dlrm_dcnv2", 0, 2},
                                         Case{"dlrm", 3, 5, 0.4}, Case{"dlrm_dcnv2", 3, 5, 0.4}));

TEST(Loss, IsStableForLargeLogits) {
  const std::vector<float> logits = {100, -100, 0}, labels = {0, 1, 1};
  std::vector<float> d(3);
  BinaryCrossEntropyGradient(logits, labels, 3, d);
  EXPECT_NEAR(MeanLoss(logits, labels), (200 + std::log(2.0)) / 3, 1e-4);
  EXPECT_FLOAT_EQ(d[0], 1.0f / 3);
  EXPECT_FLOAT_EQ(d[1], -1.0f / 3);
  EXPECT_FLOAT_EQ(d[2], -0.5f / 3);
}

TEST(MakeModel, RefusesWhatCannotBe) {
  EXPECT_ANY_THROW(MakeModel({.type = "dlrm"}));
  EXPECT_ANY_THROW(MakeModel({.type = "transformer", .num_dense = 1}));
}

}  // namespace
}  // namespace renzan
