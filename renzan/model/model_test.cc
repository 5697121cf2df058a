// Every model's gradients against finite differences, through the loss.

#include "renzan/model/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/multiply.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
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
  uint64_t seed = 3;  // of parameters: finite differences are wrong where a ReLU is about to switch
};

void PrintTo(const Case& its, std::ostream* out) {
  *out << fmt::format("{}, {} dense, tables of {}, dropout {}, seed {}", its.type, its.num_dense,
                      fmt::join(its.dims, " "), its.dropout, its.seed);
}

std::vector<TableInput> TablesOf(const std::string& type, const std::vector<int64_t>& dims) {
  std::vector<TableInput> tables;
  for (const int64_t dim : dims)
    tables.push_back({fmt::format("t{}", tables.size()), RowColumns(type, dim)});
  return tables;
}

// Makes the first table the items of a model of the next one.
void AddHistoryAndNegatives(ModelOptions* options) {
  if (!FindEntry(options->type)->takes_negatives) return;
  const TableInput& item = options->tables[0];
  options->sequences = {
      {.name = "clicked", .dim = item.dim, .positions = 5, .target = item.name},
      {.name = "negatives", .dim = item.dim, .positions = 4, .negatives_of = item.name}};
}

// Sets sequences of all lengths and, as in training, all negatives.
void SetSequences(const ModelOptions& options, int64_t n, Model::Workspace* workspace) {
  for (size_t s = 0; s < options.sequences.size(); ++s) {
    const SequenceInput& sequence = options.sequences[s];
    const std::vector<float> values =
        RandomValues(static_cast<size_t>(n * sequence.positions * sequence.dim), 11 + s);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t length =
          sequence.negatives_of.empty() ? i % (sequence.positions + 1) : sequence.positions;
      workspace->lengths[s][static_cast<size_t>(i)] = static_cast<int32_t>(length);
      workspace->features[1 + s].SetRow(i, 0, values.data() + i * sequence.positions * sequence.dim,
                                        length * sequence.dim);
    }
  }
}

double MeanLoss(std::span<const float> logits, std::span<const float> labels) {
  OutputMetrics metrics;
  metrics.Add(logits, labels);
  return metrics.LogLoss();
}

void ExpectGradients(const ModelOptions& options, uint64_t seed = 3) {
  // With too few samples some ReLU would have no gradient, and the test would be meaningless.
  const int64_t n = 8, dim = options.embedding_dim;
  const auto model = MakeModel(options);
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(seed, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(model->layout(), parameters.span());
  const auto workspace = model->MakeWorkspace(n);
  workspace->training = TrainingPosition{3, 12};
  SetSequences(options, n, workspace.get());
  const int64_t num_dense = options.num_dense;
  const auto dense = RandomValues(static_cast<size_t>(n * num_dense), 6);
  for (int64_t s = 0; s < n; ++s)
    workspace->dense.SetRow(s, 0, dense.data() + s * num_dense, num_dense);
  // The pooled rows; vector 0 belongs to the bottom MLP.
  const int64_t width = model->pooled_columns(), first = model->first_pooled();
  std::vector<float> pooled;
  const auto features = RandomValues(static_cast<size_t>(n * (dim + width)), 7);
  for (size_t i = 0; i < features.size(); ++i)
    if (static_cast<int64_t>(i) % (dim + width) >= dim) pooled.push_back(features[i]);
  const std::vector<float> labels = {1, 0, 0, 1, 0, 0, 1, 0};
  const auto loss = [&] {
    for (int64_t s = 0; s < n; ++s)
      workspace->features[0].SetRow(s, first, pooled.data() + s * width, width);
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
    workspace->d_features[0].GetRow(s, first, d_pooled.data() + s * width, width);
  EXPECT_LT(GradientError(pooled, d_pooled, loss), 2e-3) << "pooled rows";
}

// Not masknet: it normalizes sums of which most pass no ReLU, so finite differences over the whole
// model hold for no step. Its blocks have tests of their own, and tests/golden compares its
// training with PyTorch's. Nor sasrec, whose normalized vectors of few columns bend too much for
// differences in float32: tests/golden/sequences has it.
class Models : public testing::TestWithParam<Case> {};

TEST_P(Models, GradientsAgreeWithFiniteDifferences) {
  ModelOptions options{.type = GetParam().type,
                       .num_dense = GetParam().num_dense,
                       .tables = TablesOf(GetParam().type, GetParam().dims),
                       .embedding_dim = 4,
                       .sizes = {.bottom_mlp = {6},
                                 .top_mlp = {5},
                                 .second_mlp = {3},
                                 .cin_layers = {3, 2},
                                 .attention_layers = 2,
                                 .attention_heads = 2,
                                 .attention_dim = 2,
                                 .item_features = {"t0"},
                                 .tower_mlp = {5, 3},
                                 .temperature = 0.7,
                                 .cross_layers = 2,
                                 .cross_rank = 3,
                                 .dropout = GetParam().dropout},
                       .seed = 7};
  AddHistoryAndNegatives(&options);
  ExpectGradients(options, GetParam().seed);
}

// Values that several blocks take, or one block twice, and pooled rows that stay where they are, at
// the beginning, within and at the end of what holds them.
TEST(GraphModels, GradientsAreAddedWhereAValueIsUsedAgain) {
  const Mlp logit{.layers = {1}, .linear_output = true}, hidden{.layers = {6}};
  const auto expect = [](const std::vector<GraphBlock>& blocks) {
    ExpectGradients({.type = kBlocksType,
                     .blocks = SortedGraph(blocks),
                     .num_dense = 3,
                     .tables = TablesOf(kBlocksType, {2, 3}),
                     .embedding_dim = 4});
  };
  expect({{"square", {"embeddings", "embeddings"}, Product{}},
          {"hidden", {"dense"}, hidden},
          {"all", {"square", "hidden", "hidden", "embeddings", "dense"}, Concat{}},
          {"logit", {"all"}, logit}});
  expect({{"all", {"embeddings", "dense"}, Concat{}}, {"logit", {"all"}, logit}});
  expect({{"hidden", {"dense"}, hidden},
          {"all", {"hidden", "embeddings", "hidden"}, Concat{}},
          {"x", {"all"}, Cross{.layers = 2}},
          {"both", {"all", "x"}, Product{}},
          {"a", {"both"}, logit},
          {"b", {"all"}, logit},
          {"logit", {"a", "b", "a"}, Sum{}}});
  expect({{"all", {"dense", "dense", "embeddings"}, Concat{}}, {"logit", {"all"}, logit}});
}

INSTANTIATE_TEST_SUITE_P(
    All, Models,
    testing::Values(Case{"dlrm", 3, {4, 4, 4, 4, 4}}, Case{"dlrm", 0, {4, 4, 4, 4}},
                    Case{"dlrm", 3, {}}, Case{"dlrm", 3, {2, 4, 1, 4, 9}}, Case{"dlrm", 0, {3, 7}},
                    Case{"dlrm_dcnv2", 3, {4, 4, 4, 4, 4}}, Case{"dlrm_dcnv2", 0, {4, 4}},
                    Case{"dlrm_dcnv2", 3, {2, 4, 1, 4, 9}}, Case{"dlrm", 3, {4, 4, 4, 4, 4}, 0.4},
                    Case{"dlrm_dcnv2", 3, {4, 4, 4, 4, 4}, 0.4}, Case{"lr", 3, {4, 4, 4}},
                    Case{"lr", 0, {4}}, Case{"lr", 3, {}}, Case{"fm", 3, {4, 4, 4}},
                    Case{"fm", 0, {3, 7}}, Case{"wide_deep", 3, {4, 2, 4}},
                    Case{"wide_deep", 0, {4, 4}}, Case{"wide_deep", 3, {}},
                    Case{"deepfm", 3, {4, 4, 4}}, Case{"deepfm", 0, {4, 2, 9}},
                    Case{"deepfm", 3, {}}, Case{"deepfm", 3, {4, 4, 4}, 0.4},
                    Case{"dcn", 3, {4, 4, 4}}, Case{"dcn", 0, {4, 2, 9}, 0, 5}, Case{"dcn", 3, {}},
                    Case{"dcnv2", 3, {4, 4, 4}}, Case{"dcnv2", 0, {4, 2, 9}}, Case{"dcnv2", 3, {}},
                    Case{"finalmlp", 3, {4, 4, 4}, 0, 5}, Case{"finalmlp", 0, {4, 2, 9}, 0, 5},
                    Case{"finalmlp", 3, {}}, Case{"finalmlp", 3, {4, 4}, 0.4, 5},
                    Case{"xdeepfm", 3, {4, 4, 4}}, Case{"xdeepfm", 0, {4, 2, 9}},
                    Case{"xdeepfm", 3, {}}, Case{"xdeepfm", 3, {4, 4}, 0.4},
                    Case{"autoint", 3, {4, 2}, 0, 5}, Case{"autoint", 0, {4, 4}, 0, 5},
                    Case{"autoint", 3, {}}, Case{"hstu", 0, {4}, 0, 5}, Case{"hstu", 0, {4}, 0, 6},

                    Case{"two_tower", 3, {4}}, Case{"two_tower", 0, {4, 4, 2}, 0.4}));

// The logits and gradients of a batch, in one precision.
std::vector<float> LogitsAndGradients(const std::string& type, Precision precision) {
  const int64_t n = 64, dim = 16, num_dense = 13;
  ModelOptions options = {.type = type,
                          .num_dense = num_dense,
                          .tables = TablesOf(type, {16, 16, 8, 16, 32, 16, 16, 5, 16}),
                          .embedding_dim = dim,
                          .sizes = {.bottom_mlp = {64, 40},
                                    .top_mlp = {65, 32},
                                    .item_features = {"t1", "t7"},
                                    .tower_mlp = {65, 32},
                                    .temperature = 0.5,
                                    .cross_layers = 2,
                                    .cross_rank = 24},
                          .precision = precision};
  if (const CatalogueEntry& entry = *FindEntry(type); entry.has_several_outputs())
    options.outputs = entry.outputs({"a", "b"});
  AddHistoryAndNegatives(&options);
  const auto model = MakeModel(options);
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(3, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(model->layout(), parameters.span(), precision);
  packed.Pack(pool);
  const auto w = model->MakeWorkspace(n);
  SetSequences(options, n, w.get());
  w->training = TrainingPosition{3, 12};
  const int64_t width = model->pooled_columns(), first = model->first_pooled();
  const auto dense = RandomValues(static_cast<size_t>(n * num_dense), 6);
  const auto pooled = RandomValues(static_cast<size_t>(n * width), 7);
  for (int64_t s = 0; s < n; ++s) {
    w->dense.SetRow(s, 0, dense.data() + s * num_dense, num_dense);
    w->features[0].SetRow(s, first, pooled.data() + s * width, width);
  }
  std::vector<float> labels(w->logits.size());
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 3 == 0 ? 1.0f : 0.0f;
  model->Forward(packed, w.get());
  std::vector<float> results(w->logits.span().begin(), w->logits.span().end());
  BinaryCrossEntropyGradient({}, w->logits.span(), labels, {}, n, w->d_logits.span());
  AlignedBuffer gradients(parameters.size());
  FlatGradients flat(gradients.data());
  model->Backward(packed, &flat, w.get());
  results.insert(results.end(), gradients.span().begin(), gradients.span().end());
  for (int64_t s = 0; s < n; ++s)
    for (int64_t c = first; c < first + width; ++c) results.push_back(w->d_features[0].at(s, c));
  return results;
}

TEST(Models, BFloat16IsFloat32UpToItsRounding) {
  for (const std::string& type : ModelTypeNames()) {
    const std::vector<float> exact = LogitsAndGradients(type, Precision::kFloat32);
    const std::vector<float> rounded = LogitsAndGradients(type, Precision::kBFloat16);
    double error = 0, size = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      error += std::pow(double{exact[i]} - double{rounded[i]}, 2);
      size += std::pow(double{exact[i]}, 2);
    }
    // A rounding is 2^-9 at most.
    EXPECT_LT(std::sqrt(error / size), 0.02) << type;
    EXPECT_GT(std::sqrt(error / size), 0.0002) << type;
  }
}

TEST(MakeModel, RejectsInvalidOptions) {
  EXPECT_ANY_THROW(MakeModel({.type = "dlrm"}));
  EXPECT_ANY_THROW(MakeModel({.type = "transformer", .num_dense = 1}));
}

}  // namespace
}  // namespace renzan
