#include "renzan/train/model_options.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "renzan/base/error.h"

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

}  // namespace

ModelOptions ModelOptionsOf(const TrainConfig& config, const DatasetSchema& schema) {
  const ModelConfig& m = config.model;
  return {.type = m.type,
          .num_dense = static_cast<int64_t>(schema.dense.size()),
          .num_tables = static_cast<int64_t>(schema.categorical.size()),
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

std::vector<TableSpec> TablesOf(const ModelConfig& config, const DatasetSchema& schema,
                                std::span<const double> pooling_factors) {
  CHECK(pooling_factors.size() == schema.categorical.size());
  std::vector<std::string> names;
  std::vector<TableSpec> tables;
  for (size_t t = 0; t < schema.categorical.size(); ++t) {
    const CategoricalFeature& feature = schema.categorical[t];
    const auto own = config.tables.find(feature.name);
    const std::string& pooling = own != config.tables.end() ? own->second.pooling : config.pooling;
    tables.push_back(
        {.name = feature.name,
         .num_embeddings = feature.num_embeddings,
         .embedding_dim = config.embedding_dim,
         .pooling = ValueNamed("model.pooling", pooling,
                               {std::pair{"sum", Pooling::kSum}, {"mean", Pooling::kMean}}),
         .multi_hot = feature.multi_hot,
         .pooling_factor = pooling_factors[t]});
    names.push_back(feature.name);
  }
  for (const auto& [name, table] : config.tables) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = NearestName(name, names);
    Fail(ErrorCode::kConfig, "model.tables.{}: the dataset has no categorical feature '{}'{}", name,
         name, nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
  }
  return tables;
}

}  // namespace renzan
