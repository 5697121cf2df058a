#include "renzan/model/reach.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/catalogue/catalogue.h"

namespace renzan {
namespace {

constexpr int64_t kSamples = 32, kDim = 4;

// A model with random parameters, and inputs that can be changed one by one.
class Probe {
 public:
  explicit Probe(const ModelOptions& options)
      : options_(options),
        model_(MakeModel(options)),
        workspace_(model_->MakeWorkspace(kSamples)),
        parameters_(static_cast<size_t>(model_->layout().size())),
        packed_(model_->layout(), parameters_.span(), options.precision) {
    // Biases too, so that units are not all off or on.
    const std::vector<float> values = RandomValues(parameters_.size(), 3);
    std::copy(values.begin(), values.end(), parameters_.data());
    ThreadPool pool(1);
    packed_.Pack(pool);
    dense_ = RandomValues(static_cast<size_t>(kSamples * options.num_dense), 4);
    pooled_ = RandomValues(static_cast<size_t>(kSamples * pooled_columns()), 5);
  }

  // Whether any sample's logit changes with a dense feature.
  bool DependsOnDense(int64_t feature) { return Changes(&dense_, options_.num_dense, feature, 1); }
  // Whether any sample's logit changes with a table's looked-up rows.
  bool DependsOnTable(size_t table) {
    int64_t first = 0;
    for (size_t t = 0; t < table; ++t) first += options_.tables[t].dim;
    return Changes(&pooled_, pooled_columns(), first, options_.tables[table].dim);
  }

 private:
  int64_t pooled_columns() const { return model_->pooled_columns(); }

  bool Changes(std::vector<float>* inputs, int64_t width, int64_t first, int64_t columns) {
    const std::vector<float> before = Logits(), kept = *inputs;
    for (int64_t s = 0; s < kSamples; ++s)
      for (int64_t c = first; c < first + columns; ++c)
        (*inputs)[static_cast<size_t>(s * width + c)] += 0.5f;
    const std::vector<float> after = Logits();
    *inputs = kept;
    return before != after;
  }

  std::vector<float> Logits() {
    for (int64_t s = 0; s < kSamples; ++s) {
      workspace_->dense.SetRow(s, 0, dense_.data() + s * options_.num_dense, options_.num_dense);
      workspace_->features[0].SetRow(s, model_->first_pooled(),
                                     pooled_.data() + s * pooled_columns(), pooled_columns());
    }
    model_->Forward(packed_, workspace_.get());
    const std::span<const float> logits = workspace_->logits.span();
    return {logits.begin(), logits.end()};
  }

  ModelOptions options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Model::Workspace> workspace_;
  AlignedBuffer parameters_;
  PackedParameters packed_;
  std::vector<float> dense_, pooled_;
};

// Every model with these features, with and without each optional part, and as small as it can be:
// there are thousands.
std::vector<ModelOptions> AllOptions(int64_t num_dense, const std::vector<int64_t>& dims) {
  std::vector<ModelOptions> all;
  for (const std::string& type : ModelTypeNames())
    for (const std::vector<int64_t>& hidden : {std::vector<int64_t>{}, {16}})
      for (const int cross_layers : {0, 2})
        for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
          ModelOptions options{.type = type,
                               .num_dense = num_dense,
                               .tables = {},
                               .embedding_dim = kDim,
                               .sizes = {.bottom_mlp = hidden,
                                         .top_mlp = hidden,
                                         .cin_layers = {4},
                                         .attention_layers = 1,
                                         .attention_dim = 4,
                                         .attention_mlp = {8},
                                         .mask_blocks = 1,
                                         .mask_width = 8,
                                         .expert_mlp = {8},
                                         .item_features = {"t0"},
                                         .tower_mlp = {8, 4},
                                         .cross_layers = cross_layers,
                                         .cross_rank = 3},
                               .precision = precision};
          if (const CatalogueEntry* entry = FindEntry(type); entry && entry->has_several_outputs())
            options.outputs = entry->outputs({"a", "b"});
          for (const int64_t dim : dims)
            options.tables.push_back(
                {fmt::format("t{}", options.tables.size()), RowColumns(type, dim)});
          all.push_back(std::move(options));
        }
  return all;
}

// A model is refused if and only if some input cannot reach the logit.
TEST(InputsReachLogit, OrTheModelIsRefused) {
  int refused = 0;
  for (const int64_t num_dense : {0, 1, 3})
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {4}, {3}, {4, 4}, {4, 7}, {4, 4, 4}, {1, 4, 2, 4, 9}}) {
      if (num_dense == 0 && dims.empty()) continue;
      for (const ModelOptions& options : AllOptions(num_dense, dims)) {
        // Needs a feature for each tower.
        if (options.type == "two_tower" && (dims.empty() || num_dense + std::ssize(dims) < 2))
          continue;
        SCOPED_TRACE(fmt::format("{}, {} dense, tables of {}, {} hidden, {} cross", options.type,
                                 num_dense, fmt::join(dims, " "), options.sizes.top_mlp.size(),
                                 options.sizes.cross_layers));
        const CatalogueEntry* entry = FindEntry(options.type);
        if (entry != nullptr && entry->needs_sequences) continue;  // see below
        Probe probe(options);
        bool all_reach = true;
        for (int64_t d = 0; d < num_dense; ++d) all_reach &= probe.DependsOnDense(d);
        for (size_t t = 0; t < dims.size(); ++t) all_reach &= probe.DependsOnTable(t);
        try {
          CheckInputsReachLogit(options);
          EXPECT_TRUE(all_reach);
        } catch (const Error& error) {
          ++refused;
          EXPECT_FALSE(all_reach);
          EXPECT_EQ(error.code(), ErrorCode::kConfig);
          EXPECT_NE(std::string(error.what()).find("use model.type: dlrm_dcnv2"),
                    std::string::npos);
          ModelOptions alternative = options;
          alternative.type = "dlrm_dcnv2";
          CheckInputsReachLogit(alternative);
        }
      }
    }
  EXPECT_GT(refused, 0);
}

TEST(BatchStatistics, NeedTwoSamples) {
  ModelOptions options{.type = "deepfm", .num_dense = 3};
  CheckBatchStatistics(options, 1);
  options.sizes.normalization = "batch";
  CheckBatchStatistics(options, 2);
  try {
    CheckBatchStatistics(options, 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what())
                  .find("block deep normalizes by the samples of a virtual "
                        "worker, but each has only one: raise"),
              std::string::npos);
  }
}

TEST(InBatchSoftmaxModels, NeedTwoSamples) {
  const ModelOptions options{.type = "two_tower",
                             .tables = {{"user", 4}, {"item", 4}},
                             .sizes = {.item_features = {"item"}}};
  CheckBatchStatistics(options, 2);
  try {
    CheckBatchStatistics(options, 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_EQ(std::string(error.what()),
              "model.type: two_tower: block logit takes a sample's negatives from the other "
              "samples of its virtual worker, but each has only one: raise training.batch_size to "
              "twice numerics.virtual_workers or more, or lower numerics.virtual_workers");
  }
}

TEST(LostEffects, AreSaidWhereOnlyPairsAreSeen) {
  const std::vector<TableInput> two = {{"a", 4}, {"b", 4}};
  EXPECT_NE(LostEffects({.type = "dlrm", .tables = two}).find("dlrm_dcnv2"), std::string::npos);
  EXPECT_EQ(LostEffects({.type = "dlrm", .num_dense = 1, .tables = two}), "");
  EXPECT_EQ(LostEffects({.type = "dlrm_dcnv2", .tables = two}), "");
}

std::string WhyUnreachable(const ModelOptions& options) {
  try {
    CheckInputsReachLogit(options);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
}

TEST(InputsReachLogit, SequencesAreTakenOrRefused) {
  const auto refusal = WhyUnreachable;
  ModelOptions options{.type = "din", .tables = {{"item", 4}}};
  EXPECT_EQ(refusal(options),
            "model.type: din attends to sequences, but the dataset has none: import it with "
            "max_length in the schema");
  options.sequences = {{.name = "clicked", .dim = 4, .positions = 3, .target = "item"}};
  EXPECT_EQ(refusal(options), "");
  options.type = "bst";
  EXPECT_EQ(refusal(options), "");
  options.type = "dcnv2";
  EXPECT_EQ(refusal(options),
            "model.type: dcnv2 does not take the sequence 'clicked': set "
            "model.tables.clicked.pooling to that of its table, sum or mean, or use a model that "
            "does");
  options.type = kBlocksType;
  options.blocks = {{"pooled", {"embeddings.clicked"}, Pool{}},
                    {"logit", {"pooled"}, Mlp{.layers = {1}, .linear_output = true}}};
  EXPECT_NE(refusal(options).find("no block takes embeddings, but"), std::string::npos);
  options.blocks[1].inputs = {"pooled", "embeddings.item"};
  options.blocks.insert(options.blocks.begin() + 1,
                        {"both", {"pooled", "embeddings.item"}, Concat{}});
  options.blocks.back().inputs = {"both"};
  EXPECT_EQ(refusal(options), "");
  options.tables.push_back({"user", 4});
  EXPECT_NE(refusal(options).find("no block takes embeddings.user"), std::string::npos);
}

TEST(InputsReachLogit, ModelsOfTheNextItemTakeEverythingElse) {
  for (const char* type : {"sasrec", "hstu"}) {
    const std::string model = fmt::format("model.type: {}", type);
    ModelOptions options{.type = type, .num_dense = 2, .tables = {{"item", 4}, {"user", 3}}};
    options.sizes.top_mlp = {5};
    EXPECT_EQ(WhyUnreachable(options), model +
                                           " attends to sequences, but the dataset has none: "
                                           "import it with max_length in the schema");
    options.sequences = {{.name = "clicked", .dim = 4, .positions = 3}};
    EXPECT_EQ(WhyUnreachable(options),
              model +
                  " predicts the next item of a sequence, but no sequence shares its table with "
                  "a feature of one value: import one with max_length in the schema, and with "
                  "the item's table");
    options.sequences[0].target = "item";
    EXPECT_EQ(WhyUnreachable(options),
              model +
                  " tells 'item' from negatives: say how many training draws for each sample, "
                  "such as model.negatives: {item: 100}");
    options.sequences.push_back(
        {.name = "item%2Enegatives", .dim = 4, .positions = 2, .negatives_of = "item"});
    EXPECT_EQ(WhyUnreachable(options), "");
    Probe probe(options);
    for (const size_t table : {0, 1}) EXPECT_TRUE(probe.DependsOnTable(table));
    for (const int64_t dense : {0, 1}) EXPECT_TRUE(probe.DependsOnDense(dense));
    options.sequences.push_back({.name = "bought", .dim = 4, .positions = 2, .target = "item"});
    EXPECT_EQ(WhyUnreachable(options),
              model +
                  " does not take the sequence 'bought': set model.tables.bought.pooling to "
                  "that of its table, sum or mean, or use a model that does");
    options.sequences.back() = {
        .name = "user%2Enegatives", .dim = 3, .positions = 2, .negatives_of = "user"};
    EXPECT_EQ(WhyUnreachable(options), "model.negatives.user: nothing in " + model +
                                           " takes them: leave them out, or give "
                                           "embeddings.user.negatives to a sampled_softmax");
  }
}

TEST(InputsReachLogit, NegativesAreTakenOrRefused) {
  ModelOptions options{
      .type = "din",
      .tables = {{"item", 4}},
      .sequences = {
          {.name = "clicked", .dim = 4, .positions = 3, .target = "item"},
          {.name = "item%2Enegatives", .dim = 4, .positions = 2, .negatives_of = "item"}}};
  EXPECT_EQ(WhyUnreachable(options),
            "model.negatives.item: nothing in model.type: din takes them: leave them out, or give "
            "embeddings.item.negatives to a sampled_softmax");
  options.type = kBlocksType;
  options.blocks = {{"pooled", {"embeddings.clicked"}, Pool{}},
                    {"both", {"pooled", "embeddings.item"}, Concat{}},
                    {"logit", {"both"}, Mlp{.layers = {1}, .linear_output = true}}};
  EXPECT_EQ(WhyUnreachable(options),
            "model.negatives.item: no block takes them: leave them out, or give "
            "embeddings.item.negatives to a sampled_softmax");
}

}  // namespace
}  // namespace renzan
