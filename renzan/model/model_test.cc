// Every model's gradients against finite differences, through the loss.

#include "renzan/model/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/model/loss.h"
#include "renzan/model/metrics.h"
#include "renzan/nn/testing.h"

namespace renzan {
namespace {

struct Case {
  const char* type;
  int64_t num_dense;
  std::vector<int64_t> dims;  // of the tables
  double dropout = 0;
};

void PrintTo(const Case& its, std::ostream* out) {
  *out << fmt::format("{}, {} dense, tables of {}, dropout {}", its.type, its.num_dense,
                      fmt::join(its.dims, " "), its.dropout);
}

std::vector<TableInput> TablesOf(const std::vector<int64_t>& dims) {
  std::vector<TableInput> tables;
  for (const int64_t dim : dims) tables.push_back({fmt::format("t{}", tables.size()), dim});
  return tables;
}

double MeanLoss(std::span<const float> logits, std::span<const float> labels) {
  BinaryMetrics metrics;
  metrics.Add(logits, labels);
  return metrics.LogLoss();
}

class Models : public testing::TestWithParam<Case> {};

TEST_P(Models, GradientsAgreeWithFiniteDifferences) {
  // With too few samples some ReLU would have no gradient, and the test would be meaningless.
  const int64_t n = 8, dim = 4;
  const auto model = MakeModel({.type = GetParam().type,
                                .num_dense = GetParam().num_dense,
                                .tables = TablesOf(GetParam().dims),
                                .embedding_dim = dim,
                                .bottom_mlp = {6},
                                .top_mlp = {5},
                                .cross_layers = 2,
                                .cross_rank = 3,
                                .dropout = {.rate = GetParam().dropout, .seed = 7}});
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(3, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(model->layout(), parameters.span());
  const auto workspace = model->MakeWorkspace(n);
  workspace->training = TrainingPosition{3, 12};
  const int64_t num_dense = GetParam().num_dense;
  const auto dense = RandomValues(static_cast<size_t>(n * num_dense), 6);
  for (int64_t s = 0; s < n; ++s)
    workspace->dense.SetRow(s, 0, dense.data() + s * num_dense, num_dense);
  // The pooled rows; vector 0 belongs to the bottom MLP.
  const int64_t width = model->features_per_sample() - dim;
  std::vector<float> pooled;
  const auto features = RandomValues(static_cast<size_t>(n * (dim + width)), 7);
  for (size_t i = 0; i < features.size(); ++i)
    if (static_cast<int64_t>(i) % (dim + width) >= dim) pooled.push_back(features[i]);
  const std::vector<float> labels = {1, 0, 0, 1, 0, 0, 1, 0};
  const auto loss = [&] {
    for (int64_t s = 0; s < n; ++s)
      workspace->features.SetRow(s, dim, pooled.data() + s * width, width);
    packed.Pack(pool);
    model->Forward(packed, workspace.get());
    BinaryCrossEntropyGradient({}, workspace->logits.span(), labels, {}, n,
                               workspace->d_logits.span());
    return MeanLoss(workspace->logits.span(), labels);
  };
  loss();
  AlignedBuffer gradients(parameters.size());
  FlatGradients flat(gradients.data());
  model->Backward(packed, &flat, workspace.get());
  for (const Parameter& p : model->layout().parameters()) {
    const size_t offset = static_cast<size_t>(p.offset), length = static_cast<size_t>(p.size);
    EXPECT_LT(GradientError(parameters.span().subspan(offset, length),
                            gradients.span().subspan(offset, length), loss),
              2e-3)
        << p.name;
  }

  if (pooled.empty()) return;
  std::vector<float> d_pooled(pooled.size());
  for (int64_t s = 0; s < n; ++s)
    workspace->d_features.GetRow(s, dim, d_pooled.data() + s * width, width);
  EXPECT_LT(GradientError(pooled, d_pooled, loss), 2e-3) << "pooled rows";
}

INSTANTIATE_TEST_SUITE_P(
    All, Models,
    testing::Values(Case{"dlrm", 3, {4, 4, 4, 4, 4}}, Case{"dlrm", 0, {4, 4, 4, 4}},
                    Case{"dlrm", 3, {}}, Case{"dlrm", 3, {2, 4, 1, 4, 9}}, Case{"dlrm", 0, {3, 7}},
                    Case{"dlrm_dcnv2", 3, {4, 4, 4, 4, 4}}, Case{"dlrm_dcnv2", 0, {4, 4}},
                    Case{"dlrm_dcnv2", 3, {2, 4, 1, 4, 9}}, Case{"dlrm", 3, {4, 4, 4, 4, 4}, 0.4},
                    Case{"dlrm_dcnv2", 3, {4, 4, 4, 4, 4}, 0.4}));

// The logits and gradients of a batch, in one precision.
std::vector<float> LogitsAndGradients(const char* type, Precision precision) {
  const int64_t n = 64, dim = 16, num_dense = 13;
  const auto model = MakeModel({.type = type,
                                .num_dense = num_dense,
                                .tables = TablesOf({16, 16, 8, 16, 32, 16, 16, 5, 16}),
                                .embedding_dim = dim,
                                .bottom_mlp = {64, 40},
                                .top_mlp = {65, 32},
                                .cross_layers = 2,
                                .cross_rank = 24,
                                .precision = precision});
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(3, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(model->layout(), parameters.span(), precision);
  packed.Pack(pool);
  const auto w = model->MakeWorkspace(n);
  const int64_t width = model->features_per_sample() - dim;
  const auto dense = RandomValues(static_cast<size_t>(n * num_dense), 6);
  const auto pooled = RandomValues(static_cast<size_t>(n * width), 7);
  std::vector<float> labels;
  for (int64_t s = 0; s < n; ++s) {
    w->dense.SetRow(s, 0, dense.data() + s * num_dense, num_dense);
    w->features.SetRow(s, dim, pooled.data() + s * width, width);
    labels.push_back(s % 3 == 0 ? 1.0f : 0.0f);
  }
  model->Forward(packed, w.get());
  std::vector<float> results(w->logits.span().begin(), w->logits.span().end());
  BinaryCrossEntropyGradient({}, w->logits.span(), labels, {}, n, w->d_logits.span());
  AlignedBuffer gradients(parameters.size());
  FlatGradients flat(gradients.data());
  model->Backward(packed, &flat, w.get());
  results.insert(results.end(), gradients.span().begin(), gradients.span().end());
  for (int64_t s = 0; s < n; ++s)
    for (int64_t c = dim; c < dim + width; ++c) results.push_back(w->d_features.at(s, c));
  return results;
}

TEST(Models, BFloat16IsFloat32UpToItsRounding) {
  for (const char* type : {"dlrm", "dlrm_dcnv2"}) {
    const std::vector<float> exact = LogitsAndGradients(type, Precision::kFloat32);
    const std::vector<float> rounded = LogitsAndGradients(type, Precision::kBFloat16);
    double error = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      error += std::pow(double{exact[i]} - double{rounded[i]}, 2);
      size += std::pow(double{exact[i]}, 2);
    }
    // A rounding is 2^-9 at most.
    EXPECT_LT(std::sqrt(error / size), 0.02) << type;
    EXPECT_GT(std::sqrt(error / size), 0.0005) << type;
  }
}

TEST(MakeModel, RejectsInvalidOptions) {
  EXPECT_ANY_THROW(MakeModel({.type = "dlrm"}));
  EXPECT_ANY_THROW(MakeModel({.type = "transformer", .num_dense = 1}));
}

}  // namespace
}  // namespace renzan
