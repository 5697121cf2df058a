#include "renzan/train/model_options.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

// The value of a configuration keyword. Fails for an unknown word, because the configuration may
// not have come from a validated file.
template <typename Value>
Value ValueNamed(const char* key, const std::string& name,
                 std::initializer_list<std::pair<const char*, Value>> values) {
  for (const auto& [word, value] : values)
    if (name == word) return value;
  Fail(ErrorCode::kConfig, "{}: '{}' is unknown", key, name);
}

// Of a feature's table.
int64_t DimOf(const ModelConfig& model, const std::string& feature) {
  const auto own = model.tables.find(feature);
  return own != model.tables.end() && own->second.embedding_dim > 0 ? own->second.embedding_dim
                                                                    : model.embedding_dim;
}

}  // namespace

ModelOptions ModelOptionsOf(const TrainConfig& config, const DatasetSchema& schema) {
  const ModelConfig& m = config.model;
  std::vector<TableInput> tables;
  for (const CategoricalFeature& feature : schema.categorical)
    tables.push_back({.name = EscapeName(feature.name), .dim = DimOf(m, feature.name)});
  return {.type = m.type,
          .num_dense = static_cast<int64_t>(schema.dense.size()),
          .tables = std::move(tables),
          .embedding_dim = m.embedding_dim,
          .bottom_mlp = m.bottom_mlp,
          .top_mlp = m.top_mlp,
          .cross_layers = m.cross_layers,
          .cross_rank = m.cross_rank,
          .dropout = {.rate = m.dropout, .seed = config.seed},
          .precision = PrecisionOf(config.numerics)};
}

DenseOptimizerOptions DenseOptionsOf(const DenseOptimizerConfig& config) {
  using enum DenseOptimizerType;
  return {.type = ValueNamed("optimizer.dense.type", config.type,
                             {std::pair{"sgd", kSgd}, {"adagrad", kAdagrad}, {"adam", kAdam}}),
          .epsilon = config.epsilon,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .initial_accumulator = config.initial_accumulator,
          .weight_decay = config.weight_decay};
}

SparseOptimizerOptions SparseOptionsOf(const SparseOptimizerConfig& config) {
  using enum SparseOptimizerType;
  using enum WeightDecayMode;
  return {
      .type = ValueNamed(
          "optimizer.sparse.type", config.type,
          {std::pair{"sgd", kSgd}, {"adagrad", kAdagrad}, {"rowwise_adagrad", kRowWiseAdagrad}}),
      .epsilon = config.epsilon,
      .initial_accumulator = config.initial_accumulator,
      .weight_decay = config.weight_decay,
      .weight_decay_mode =
          ValueNamed("optimizer.sparse.weight_decay_mode", config.weight_decay_mode,
                     {std::pair{"decoupled", kDecoupled}, {"l2", kL2}})};
}

namespace {

// Throws kConfig unless each of the names that `key` has settings for is a feature's.
template <typename Value>
void CheckNames(const char* key, const std::map<std::string, Value>& settings,
                const std::vector<std::string>& features) {
  for (const auto& [name, value] : settings) {
    if (std::find(features.begin(), features.end(), name) != features.end()) continue;
    const std::string nearest = NearestName(name, features);
    Fail(ErrorCode::kConfig, "{}.{}: the dataset has no categorical feature '{}'{}", key, name,
         name, nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
  }
}

int RowBlocksOf(const NumericsConfig& numerics, const TableConfig& own, int64_t rows, int64_t dim) {
  const int wanted = own.row_blocks > 0 ? own.row_blocks : numerics.row_blocks;
  return wanted > 0 ? std::min(wanted, MaxRowBlocks(rows)) : DefaultRowBlocks(rows, dim);
}

}  // namespace

std::vector<TableSpec> TablesOf(const TrainConfig& config, const DatasetSchema& schema,
                                std::span<const double> pooling_factors) {
  CHECK(pooling_factors.size() == schema.categorical.size());
  const ModelConfig& model = config.model;
  std::vector<std::string> names;
  std::vector<TableSpec> tables;
  for (size_t t = 0; t < schema.categorical.size(); ++t) {
    const CategoricalFeature& feature = schema.categorical[t];
    const auto found = model.tables.find(feature.name);
    TableConfig own = found != model.tables.end() ? found->second : TableConfig();
    if (own.pooling.empty()) own.pooling = model.pooling;
    const int64_t dim = DimOf(model, feature.name);
    tables.push_back(
        {.name = feature.name,
         .num_embeddings = feature.num_embeddings,
         .embedding_dim = dim,
         .pooling = ValueNamed("model.pooling", own.pooling,
                               {std::pair{"sum", Pooling::kSum}, {"mean", Pooling::kMean}}),
         .multi_hot = feature.multi_hot,
         .pooling_factor = own.pooling_factor > 0 ? own.pooling_factor : pooling_factors[t],
         .row_blocks = RowBlocksOf(config.numerics, own, feature.num_embeddings, dim),
         .column_blocks =
             own.column_blocks > 0 ? own.column_blocks : config.numerics.column_blocks});
    names.push_back(feature.name);
  }
  CheckNames("model.tables", model.tables, names);
  CheckNames("sharding.tables", config.sharding.tables, names);
  return tables;
}

}  // namespace renzan
