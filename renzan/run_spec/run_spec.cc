#include "renzan/run_spec/run_spec.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/run_spec/negatives.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// The type of the optimizer called `name`.
template <typename Info>
auto TypeNamed(const char* key, const std::string& name, std::span<const Info> all) {
  for (const Info& info : all)
    if (name == info.name) return info.type;
  Fail(ErrorCode::kConfig, "{}: '{}' is unknown", key, name);
}

template <typename Value>
Value ValueNamed(const char* key, const std::string& name,
                 std::initializer_list<std::pair<const char*, Value>> values) {
  for (const auto& [word, value] : values)
    if (name == word) return value;
  Fail(ErrorCode::kConfig, "{}: '{}' is unknown", key, name);
}

// The columns of a table.
int64_t DimOf(const ModelConfig& model, const std::string& table) {
  const auto own = model.tables.find(table);
  return RowColumns(model.type, own != model.tables.end() && own->second.embedding_dim > 0
                                    ? own->second.embedding_dim
                                    : model.embedding_dim);
}

DenseOptimizerOptions DenseOptionsOf(const DenseOptimizerConfig& config) {
  return {.type = TypeNamed("optimizer.dense.type", config.type, DenseOptimizers()),
          .epsilon = config.epsilon,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .initial_accumulator = config.initial_accumulator,
          .weight_decay = config.weight_decay};
}

SparseOptimizerOptions SparseOptionsOf(const SparseOptimizerConfig& config) {
  using enum WeightDecayMode;
  return {.type = TypeNamed("optimizer.sparse.type", config.type, SparseOptimizers()),
          .epsilon = config.epsilon,
          .initial_accumulator = config.initial_accumulator,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .momentum = config.momentum,
          .beta = config.beta,
          .l1 = config.l1,
          .l2 = config.l2,
          .weight_decay = config.weight_decay,
          .weight_decay_mode =
              ValueNamed("optimizer.sparse.weight_decay_mode", config.weight_decay_mode,
                         {std::pair{"decoupled", kDecoupled}, {"l2", kL2}}),
          .all_rows = ValueNamed("optimizer.sparse.rows", config.rows,
                                 {std::pair{"touched", false}, {"all", true}})};
}

// Throws kConfig unless every name that `key` has settings for is a feature's.
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

TableConfig SettingsOf(const ModelConfig& model, const std::string& table) {
  const auto found = model.tables.find(table);
  return found != model.tables.end() ? found->second : TableConfig();
}

// A feature that shares a table has no settings of its own but whether it is pooled, and how is
// the table's.
void CheckTableSettings(const TrainConfig& config, const DatasetSchema& schema) {
  std::vector<std::string> tables, names;
  for (const CategoricalFeature& feature : schema.categorical) {
    tables.push_back(feature.table_name());
    names.insert(names.end(), {feature.table_name(), feature.name});
  }
  CheckNames("model.tables", config.model.tables, names);
  for (const CategoricalFeature& feature : schema.categorical)
    if (feature.name != feature.table_name() && config.sharding.tables.contains(feature.name) &&
        std::find(tables.begin(), tables.end(), feature.name) == tables.end())
      Fail(ErrorCode::kConfig, "sharding.tables.{}: the table of feature '{}' is '{}': name that",
           feature.name, feature.name, feature.table_name());
  CheckNames("sharding.tables", config.sharding.tables, tables);
  for (const CategoricalFeature& feature : schema.categorical) {
    const auto found = config.model.tables.find(feature.name);
    if (found == config.model.tables.end() || feature.name == feature.table_name()) continue;
    const TableConfig of_table = SettingsOf(config.model, feature.table_name());
    const std::string& pooling = of_table.pooling.empty() ? config.model.pooling : of_table.pooling;
    if (!found->second.pooling.empty() && found->second.pooling != pooling)
      Fail(ErrorCode::kConfig,
           "model.tables.{}.pooling: {}, but that of its table '{}' is {}: features that share a "
           "table are pooled alike; model.tables.{}.pooling says how",
           feature.name, found->second.pooling, feature.table_name(), pooling,
           feature.table_name());
    TableConfig rest = found->second;
    rest.pooling.clear();
    if (rest != TableConfig())
      Fail(ErrorCode::kConfig,
           "model.tables.{}: the rows of feature '{}' are those of table '{}': move the settings "
           "to model.tables.{}",
           feature.name, feature.name, feature.table_name(), feature.table_name());
  }
}

int RowBlocksOf(const NumericsConfig& numerics, const TableConfig& own, int64_t rows, int64_t dim) {
  const int wanted = own.row_blocks > 0 ? own.row_blocks : numerics.row_blocks;
  return wanted > 0 ? std::min(wanted, MaxRowBlocks(rows)) : DefaultRowBlocks(rows, dim);
}

// How many rows a sample has of a feature that is not pooled; 0: it is.
int64_t PositionsOf(const ModelConfig& model, const CategoricalFeature& feature) {
  return SettingsOf(model, feature.name).pooling.empty() ? feature.max_length : 0;
}

void SetInitialValues(const TableConfig& own, TableSpec* table) {
  if (own.initial_values == "zeros") {
    table->initial_values = Distribution::kZeros;
    table->initial_bound = 0.0f;
  }
  if (own.initial_values == "normal") {
    table->initial_values = Distribution::kNormal;
    table->initial_bound = static_cast<float>(own.initial_deviation);
  }
  if (own.initial_values == "xavier_uniform")
    table->initial_bound = static_cast<float>(
        std::sqrt(6.0 / static_cast<double>(table->num_embeddings + table->embedding_dim)));
}

TableSpec TableOf(const TrainConfig& config, const CategoricalFeature& first) {
  TableConfig own = SettingsOf(config.model, first.table_name());
  FillFromModel(config.model, &own);
  const int64_t dim = DimOf(config.model, first.table_name());
  TableSpec table{
      .name = first.table_name(),
      .num_embeddings = first.num_embeddings,
      .embedding_dim = dim,
      .pooling = ValueNamed("model.pooling", own.pooling,
                            {std::pair{"sum", Pooling::kSum}, {"mean", Pooling::kMean}}),
      .multi_hot = false,
      .pooling_factor = own.pooling_factor,
      .row_blocks = RowBlocksOf(config.numerics, own, first.num_embeddings, dim),
      .column_blocks = own.column_blocks > 0 ? own.column_blocks : config.numerics.column_blocks,
      .features = {},
      .learning_rate_factor = own.learning_rate_factor,
      .frozen = own.frozen};
  SetInitialValues(own, &table);
  return table;
}

struct Tables {
  std::vector<TableSpec> specs;
  std::vector<size_t> features;
};

// Tables are in the order of their first features.
Tables TablesOf(const TrainConfig& config, const DatasetSchema& schema,
                std::span<const double> pooling_factors) {
  CHECK(pooling_factors.size() == schema.categorical.size());
  std::vector<std::vector<size_t>> of_table;
  std::vector<std::string> names;
  for (size_t f = 0; f < schema.categorical.size(); ++f) {
    const std::string& name = schema.categorical[f].table_name();
    const auto t = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (t == names.size()) {
      names.push_back(name);
      of_table.emplace_back();
    }
    of_table[t].push_back(f);
  }
  Tables tables;
  for (const std::vector<size_t>& features : of_table) {
    TableSpec table = TableOf(config, schema.categorical[features[0]]);
    const bool counted = table.pooling_factor == 0;
    for (const size_t f : features) {
      const CategoricalFeature& feature = schema.categorical[f];
      table.features.push_back(PositionsOf(config.model, feature));
      table.multi_hot |= feature.multi_hot;
      table.weighted |= !feature.weights.empty();
      if (counted) table.pooling_factor += pooling_factors[f];
      tables.features.push_back(f);
    }
    tables.specs.push_back(std::move(table));
  }
  return tables;
}

Numerics NumericsOf(const TrainConfig& config) {
  const NumericsConfig& numerics = config.numerics;
  const CommConfig& comm = config.comm;
  return {.batch = config.training.batch_size,
          .virtual_workers = numerics.virtual_workers,
          .on_gpu = config.device == "cuda",
          .precision = PrecisionOf(numerics),
          .tf32 = numerics.precision == "tf32",
          .rows = ParseFloatType(numerics.embedding_precision),
          .forward = ParseRowCodec(comm.forward),
          .backward = ParseRowCodec(comm.backward),
          .backward_scale = BackwardScale(config),
          .error_feedback_rows = comm.error_feedback_rows,
          .dense_wire = ParseFloatType(comm.dense)};
}

}  // namespace

void CheckBagWeights(const ModelConfig& model, const DatasetSchema& schema) {
  for (const CategoricalFeature& feature : schema.categorical) {
    TableConfig own = SettingsOf(model, feature.table_name());
    FillFromModel(model, &own);
    if (own.pooling == "mean" && feature.min_weight < 0)
      Fail(ErrorCode::kConfig,
           "model.tables.{}.pooling: mean divides by the sum of the weights, but weights of '{}' "
           "(column '{}') are below 0, down to {}: use sum, or import weights from 0 on",
           feature.table_name(), Escape(feature.name), Escape(feature.weights), feature.min_weight);
  }
}

float BackwardScale(const TrainConfig& config) {
  if (config.comm.backward != "fp16") return 1;
  int64_t scale = config.comm.backward_scale;
  if (scale == 0)
    for (scale = 256; scale < 256 * config.training.batch_size;) scale *= 2;
  return static_cast<float>(scale);
}

std::string EffectsOfSharedRows(const RunSpec& spec) {
  if (RowColumns(spec.model.type, 1) != 2) return "";  // not both
  const bool one_rate = spec.sparse_optimizer.type == SparseOptimizerType::kRowWiseAdagrad;
  if (!one_rate && spec.numerics.backward != RowCodec::kInt4) return "";
  return fmt::format(
      "the rows of model.type: {} have a first-order weight beside the embedding, whose larger "
      "gradients decide {}: embeddings learn less; use {}",
      spec.model.type,
      one_rate ? "the row's learning rate with optimizer.sparse.type: rowwise_adagrad"
               : "the row's scale with comm.backward: int4",
      one_rate ? "adagrad" : "int8");
}

namespace {

// What a sequence is compared with: the first feature of one value that has the same table, or "".
std::string TargetOf(const DatasetSchema& schema, const CategoricalFeature& sequence) {
  for (const CategoricalFeature& feature : schema.categorical)
    if (feature.table_name() == sequence.table_name() && !feature.multi_hot)
      return EscapeName(feature.name);
  return "";
}

}  // namespace

namespace {

ModelConfig WithOutputs(const ModelConfig& model, const DatasetSchema& schema) {
  ModelConfig with = model;
  if (schema.has_labels()) FillOutputs(schema.label_names(), schema.number_labels(), &with);
  return with;
}

std::vector<Task> TasksOf(const ModelConfig& model, const DatasetSchema& schema) {
  const std::vector<ModelOutput> outputs = OutputsOf(model);
  const std::vector<std::string> labels = schema.label_names();
  std::vector<Task> tasks;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].label.empty() && !outputs[i].name.empty()) continue;
    const auto found = std::find(labels.begin(), labels.end(), outputs[i].label);
    tasks.push_back(
        {.output = i,
         .label_column = found == labels.end() ? 0 : static_cast<size_t>(found - labels.begin()),
         .weight = outputs[i].name.empty() ? 1 : model.outputs.at(outputs[i].name).weight,
         .loss = outputs[i].loss});
  }
  return tasks;
}

}  // namespace

namespace {

[[noreturn]] void RejectOutput(const ModelOutput& output, std::string_view key,
                               const std::string& what) {
  throw BlockError(output.where, fmt::format("model.outputs.{}{}: {}", output.name, key, what));
}

void CheckLossOf(const ModelOutput& output, const DatasetSchema& schema) {
  const std::string& label = output.label.empty() ? schema.label : output.label;
  const std::vector<std::string> numbers = schema.number_labels();
  const bool is_number = std::find(numbers.begin(), numbers.end(), label) != numbers.end();
  if (output.loss == Loss::kBinaryCrossEntropy && is_number)
    RejectOutput(
        output, ".loss",
        fmt::format(
            "binary_cross_entropy needs labels of 0 and 1, but the label '{}' is a number: use "
            "squared_error, or import the data with a rule such as at_least",
            Escape(label)));
  if (output.loss == Loss::kSquaredError && schema.negatives_kept != 1)
    RejectOutput(
        output, ".loss",
        fmt::format(
            "the training data have {:.4g} of the rows with label 0 (negatives_kept), for which "
            "predictions by squared_error cannot be corrected: use binary_cross_entropy, or all "
            "rows",
            schema.negatives_kept));
}

}  // namespace

void CheckTasks(const LossConfig& loss, const std::vector<ModelOutput>& outputs,
                const DatasetSchema& schema) {
  const std::vector<std::string> labels = schema.label_names();
  bool any_binary = false;
  for (const ModelOutput& output : outputs) {
    const bool has_label = !output.label.empty() || output.name.empty();
    if (!output.label.empty() &&
        std::find(labels.begin(), labels.end(), output.label) == labels.end())
      RejectOutput(output, "",
                   fmt::format("the training data have no label '{}', but {}: name one of them in "
                               "model.outputs.{}.label, or import the data with it",
                               Escape(output.label),
                               Escape(fmt::format("{}", fmt::join(labels, ", "))), output.name));
    if (has_label) CheckLossOf(output, schema);
    any_binary |= has_label && output.loss == Loss::kBinaryCrossEntropy;
  }
  for (const auto& [key, is_set] : {std::pair{"pos_weight", loss.pos_weight != 1},
                                    {"label_smoothing", loss.label_smoothing != 0}})
    if (is_set && !any_binary)
      Fail(ErrorCode::kConfig,
           "training.loss.{}: is a setting of binary_cross_entropy, by which no output learns: "
           "leave it out",
           key);
}

ModelOptions ModelOptionsOf(const TrainConfig& config, const DatasetSchema& of_data) {
  const DatasetSchema schema = WithNegatives(config.model.negatives, of_data);
  const ModelConfig m = WithOutputs(config.model, schema);
  std::vector<TableInput> tables;
  std::vector<SequenceInput> sequences;
  for (const CategoricalFeature& feature : schema.categorical) {
    const int64_t dim = DimOf(m, feature.table_name()), positions = PositionsOf(m, feature);
    if (positions > 0) {
      sequences.push_back({.name = EscapeName(feature.name),
                           .dim = dim,
                           .positions = positions,
                           .target = TargetOf(schema, feature),
                           .negatives_of = NegativesOf(config.model.negatives, feature)});
    } else {
      tables.push_back({.name = EscapeName(feature.name),
                        .dim = dim,
                        .multi_hot = feature.multi_hot,
                        .num_ids = feature.num_embeddings});
    }
  }
  return {.type = m.type,
          .blocks = m.type == kBlocksType ? GraphOf(m) : Graph(),
          .num_dense = static_cast<int64_t>(schema.dense.size()),
          .tables = std::move(tables),
          .sequences = std::move(sequences),
          .outputs = OutputsOf(m),
          .embedding_dim = m.embedding_dim,
          .sizes = m,
          .seed = config.seed,
          .precision = PrecisionOf(config.numerics)};
}

size_t FirstFeatureOf(const RunSpec& spec, size_t table) {
  size_t before = 0;
  for (size_t t = 0; t < table; ++t) before += spec.tables[t].features.size();
  return spec.features[before];
}

RunSpec MakeRunSpec(const TrainConfig& config, const DatasetSchema& schema,
                    std::span<const double> pooling_factors) {
  CHECK(pooling_factors.size() == schema.categorical.size());
  CheckTableSettings(config, schema);
  CheckBagWeights(config.model, schema);
  std::vector<double> lookups(pooling_factors.begin(), pooling_factors.end());
  for (const auto& [name, count] : config.model.negatives)
    lookups.push_back(static_cast<double>(count));
  Tables tables = TablesOf(config, WithNegatives(config.model.negatives, schema), lookups);
  return {.seed = config.seed,
          .model = ModelOptionsOf(config, schema),
          .loss = {.pos_weight = config.training.loss.pos_weight,
                   .label_smoothing = config.training.loss.label_smoothing,
                   .sample_weights = !schema.weight.empty(),
                   .tasks = TasksOf(WithOutputs(config.model, schema), schema)},
          .tables = std::move(tables.specs),
          .features = std::move(tables.features),
          .negatives = NegativesOptionsOf(config.model.negatives, schema),
          .dense_optimizer = DenseOptionsOf(config.optimizer.dense),
          .sparse_optimizer = SparseOptionsOf(config.optimizer.sparse),
          .learning_rates = {.dense = config.optimizer.dense.learning_rate,
                             .sparse = config.optimizer.sparse.learning_rate,
                             .schedule = config.optimizer.schedule,
                             .blocks = config.optimizer.blocks,
                             .max_gradient_norm = config.optimizer.max_gradient_norm},
          .numerics = NumericsOf(config),
          .sharding = config.sharding,
          .memory = {.data_in_store = IsInStore(config.data.train.path),
                     .checkpoints_in_store = IsInStore(config.checkpoint.dir),
                     .evaluates = !config.data.eval.path.empty(),
                     .max_copies = config.checkpoint.max_copies_mib << 20}};
}

}  // namespace renzan
