#include "renzan/train/config.h"

#include <algorithm>
#include <utility>

#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/mebibytes.h"
#include "renzan/base/row_codec.h"
#include "renzan/model/model.h"
#include "renzan/plan/planner.h"
#include "renzan/storage/storage.h"
#include "renzan/train/quality/evaluation_record.h"

namespace renzan {
namespace {

// With 0, a gradient of exactly 0 would give 0/0 on its first step.
constexpr double kMinEpsilon = 1e-30;
constexpr int64_t kMaxSteps = int64_t{1} << 53;
constexpr int kMaxRowBlocks = 1024;
const std::vector<std::string> kFloatTypes = {"fp32", "fp16", "bf16"};
constexpr const char* kTooMuchDecay =
    "times learning_rate must be below 1, or a step would flip the sign of weights";
const std::vector<std::string> kPoolings = {"sum", "mean"};

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

bool AllPositive(const std::vector<int64_t>& sizes) {
  for (int64_t size : sizes)
    if (size < 1 || size > (int64_t{1} << 20)) return false;
  return true;
}

// The settings that determine the model's bits at a given step; all others at their defaults.
TrainConfig OnlyWhatDeterminesBits(const TrainConfig& config) {
  TrainConfig result;
  result.seed = config.seed;
  result.data.train.rows = config.data.train.rows;
  result.data.shuffle = config.data.shuffle;
  result.features = config.features;
  result.model = config.model;
  for (auto& [name, table] : result.model.tables) {
    table.pooling_factor = 0;
    // Older versions recorded it for every table that is named.
    if (table.pooling.empty()) table.pooling = result.model.pooling;
  }
  result.training.batch_size = config.training.batch_size;
  result.optimizer = config.optimizer;
  result.numerics = config.numerics;
  result.numerics.isa = NumericsConfig().isa;  // the class that it selects is compared instead
  result.comm.forward = config.comm.forward;
  result.comm.backward = config.comm.backward;
  result.comm.backward_scale = config.comm.backward_scale;
  result.comm.error_feedback_rows = config.comm.error_feedback_rows;
  result.comm.dense = config.comm.dense;
  return result;
}

template <typename Value>
void DropUnlessBothKnown(Value* a, Value* b) {
  if (!a->empty() && !b->empty()) return;
  a->clear();
  b->clear();
}

std::vector<ConfigValue> Values(TrainConfig& config) {
  return ListConfig([&](ConfigFields& fields) { config.Describe(fields); });
}

// The printed value at `path`, or "unset".
std::string TextAt(const std::vector<ConfigValue>& values, const std::vector<std::string>& path) {
  for (const ConfigValue& value : values)
    if (value.path == path) return value.text;
  return "unset";
}

}  // namespace

int NumWorkers(const TrainConfig& config, int cores) {
  if (config.workers > 0) return config.workers;
  return std::max({1, config.elastic.min, std::min(config.elastic.max, cores)});
}

float BackwardScale(const TrainConfig& config) {
  if (config.comm.backward != "fp16") return 1;
  int64_t scale = config.comm.backward_scale;
  if (scale == 0)
    for (scale = 256; scale < 256 * config.training.batch_size;) scale *= 2;
  return static_cast<float>(scale);
}

std::optional<ConfigDifference> FirstDifference(TrainConfig there, TrainConfig here) {
  const std::vector<ConfigValue> a = Values(there), b = Values(here);
  for (const auto* values : {&a, &b}) {
    for (const ConfigValue& value : *values) {
      std::string x = TextAt(a, value.path), y = TextAt(b, value.path);
      if (x != y) return ConfigDifference{value.key(), std::move(x), std::move(y)};
    }
  }
  return std::nullopt;
}

std::string DifferenceThatChangesBits(const TrainConfig& there, const TrainConfig& here) {
  TrainConfig then = OnlyWhatDeterminesBits(there), now = OnlyWhatDeterminesBits(here);
  // A table that is not named is as one without settings.
  for (const auto& [name, table] : then.model.tables)
    now.model.tables.try_emplace(name, TableConfig{.pooling = now.model.pooling});
  for (const auto& [name, table] : now.model.tables)
    then.model.tables.try_emplace(name, TableConfig{.pooling = then.model.pooling});
  // Older versions did not record these.
  DropUnlessBothKnown(&then.features.dense_transforms, &now.features.dense_transforms);
  DropUnlessBothKnown(&then.features.vocabularies, &now.features.vocabularies);
  DropUnlessBothKnown(&then.features.label_rule, &now.features.label_rule);
  const std::optional<ConfigDifference> difference = FirstDifference(then, now);
  if (!difference) return "";
  return fmt::format("{} is {} there and {} here", difference->key, difference->there,
                     difference->here);
}

std::string TooManyWorkers(int workers, int virtual_workers) {
  return fmt::format(
      "= {} is more than the {} virtual workers: use at most {}, or raise "
      "numerics.virtual_workers (which changes rounding)",
      workers, virtual_workers, virtual_workers);
}

void SplitConfig::Describe(ConfigFields& fields) {
  fields.Field("path", &path, "dataset directory, made by `renzan data import` or `data synth`");
  fields.Field("rows", &rows, "[begin, end) of its rows; all when empty");
  fields.Require(rows.empty() || (rows.size() == 2 && rows[0] >= 0 && rows[0] < rows[1]), "rows",
                 "must be [begin, end] with 0 <= begin < end");
}

DataCacheOptions DataCacheConfig::options() const {
  return {.directory = directory, .max_bytes = static_cast<uint64_t>(ParseMebibytes(size)) << 20};
}

void DataCacheConfig::Describe(ConfigFields& fields) {
  fields.Field("directory", &directory,
               "on a local disk; empty: RENZAN_DATA_CACHE, else ~/.cache/renzan/data");
  fields.Field("size", &size, "at most, such as 500GiB; 0: four fifths of what is free there");
  fields.Require(TryParseMebibytes(size).has_value(), "size", kMemoryRule);
}

void DataConfig::Describe(ConfigFields& fields) {
  fields.Section("train", &train, "what to learn from");
  fields.Section("eval", &eval, "held-out samples; none when the path is empty");
  fields.Section("cache", &cache, "of data in a store (s3://bucket/prefix)");
  fields.Field("shuffle", &shuffle, "a new sample order each epoch, derived from the seed");
  fields.Field("verify", &verify, "verify the SHA-256 of the files before training");
  fields.Field("verify_blocks", &verify_blocks,
               "verify the checksum of each block when it is first read");
}

void TableConfig::Describe(ConfigFields& fields) {
  fields.Choice("pooling", &pooling, {"", "sum", "mean"},
                "of the rows of a bag; empty: as in model");
  fields.Range("embedding_dim", &embedding_dim, 0, 4096,
               "0: as in model; dlrm projects other rows to the model's");
  fields.Range("row_blocks", &row_blocks, 0, kMaxRowBlocks, "0: as in numerics");
  fields.Require(row_blocks == 0 || IsPowerOfTwo(row_blocks), "row_blocks",
                 "must be 0 or a power of two");
  fields.Range("column_blocks", &column_blocks, 0, 4096, "0: as in numerics");
  fields.Range("pooling_factor", &pooling_factor, 0, 1e9,
               "mean lookups per sample, for `renzan plan` without data; 0: counted in the data");
}

void FeaturesConfig::Describe(ConfigFields& fields) {
  fields.Field("dense", &dense);
  fields.Field("categorical", &categorical);
  fields.Field("num_embeddings", &num_embeddings, "rows of the table of each categorical feature");
  fields.Field("multi_hot", &multi_hot);
  fields.Field("dense_transforms", &dense_transforms, "the transform of each dense feature");
  fields.Field("vocabularies", &vocabularies,
               "how values of each categorical feature were mapped to ids");
  fields.Field("label_rule", &label_rule, "how labels were mapped to 0 and 1");
  fields.Require(num_embeddings.size() == categorical.size(), "num_embeddings",
                 "must have one entry for each categorical feature");
  fields.Require(std::all_of(num_embeddings.begin(), num_embeddings.end(),
                             [](int64_t n) { return n >= 1 && n <= int64_t{1} << 48; }),
                 "num_embeddings", "must be 1 to 2^48");
  fields.Require(dense_transforms.empty() || dense_transforms.size() == dense.size(),
                 "dense_transforms", "must have one entry for each dense feature");
  fields.Require(vocabularies.empty() || vocabularies.size() == categorical.size(), "vocabularies",
                 "must have one entry for each categorical feature");
}

void ModelConfig::Describe(ConfigFields& fields) {
  fields.Choice("type", &type, ModelTypes());
  fields.Range("embedding_dim", &embedding_dim, 1, 4096);
  fields.Field("bottom_mlp", &bottom_mlp, "hidden layers; embedding_dim comes after them");
  fields.Require(AllPositive(bottom_mlp), "bottom_mlp", "layer sizes must be 1 to 1048576");
  fields.Field("top_mlp", &top_mlp, "hidden layers; the logit comes after them");
  fields.Require(AllPositive(top_mlp), "top_mlp", "layer sizes must be 1 to 1048576");
  fields.Range("cross_layers", &cross_layers, 0, 64, "dlrm_dcnv2 only");
  fields.Range("cross_rank", &cross_rank, 1, 65536, "dlrm_dcnv2 only");
  fields.Choice("pooling", &pooling, kPoolings, "of multi-hot features not named in tables");
  fields.Range("dropout", &dropout, 0, 1, "after the hidden layers of both MLPs, in training");
  fields.Require(dropout < 1, "dropout", "must be below 1");
  fields.Map("tables", &tables, "settings of single features by name");
}

void EarlyStoppingConfig::Describe(ConfigFields& fields) {
  fields.Choice("metric", &metric, EvaluationMetrics(), "of data.eval; keep_best's too");
  fields.Range("patience", &patience, 0, 1000000,
               "stop after this many evaluations without improvement; 0: never");
  fields.Range("min_delta", &min_delta, 0, 1e6, "a smaller improvement does not count");
}

void TrainingConfig::Describe(ConfigFields& fields) {
  fields.Range("batch_size", &batch_size, 1, 1 << 24, "samples per step over all workers");
  fields.Range("epochs", &epochs, 0, 1e6);
  fields.Range("max_steps", &max_steps, -1, kMaxSteps, "-1: no limit");
  fields.Range("log_every", &log_every, 1, kMaxSteps, "steps");
  fields.Range("eval_every", &eval_every, 0, kMaxSteps, "steps; 0: at the end only");
  fields.Range("eval_every_epochs", &eval_every_epochs, 0, 1e6,
               "instead of eval_every, in epochs, which may be parts of one");
  fields.Require(eval_every == 0 || eval_every_epochs == 0, "eval_every_epochs",
                 "and eval_every are both set: choose one");
  fields.Section("early_stopping", &early_stopping);
  fields.Field("keep_best", &keep_best,
               "save the model of the best evaluation instead of the last step's");
}

void DenseOptimizerConfig::Describe(ConfigFields& fields) {
  fields.Choice("type", &type, {"sgd", "adagrad", "adam"});
  fields.Range("learning_rate", &learning_rate, 0, 1e6);
  fields.Range("epsilon", &epsilon, kMinEpsilon, 1);
  fields.Range("beta1", &beta1, 0, 1, "adam");
  fields.Range("beta2", &beta2, 0, 1, "adam");
  fields.Require(beta1 < 1, "beta1", "must be below 1");
  fields.Require(beta2 < 1, "beta2", "must be below 1");
  fields.Range("initial_accumulator", &initial_accumulator, 0, 1e6, "adagrad");
  fields.Range("weight_decay", &weight_decay, 0, 1e6, "decoupled: w *= 1 - learning_rate * this");
  fields.Require(learning_rate * weight_decay < 1, "weight_decay", kTooMuchDecay);
}

void SparseOptimizerConfig::Describe(ConfigFields& fields) {
  fields.Choice("type", &type, {"sgd", "adagrad", "rowwise_adagrad"});
  fields.Range("learning_rate", &learning_rate, 0, 1e6);
  fields.Range("epsilon", &epsilon, kMinEpsilon, 1);
  fields.Range("initial_accumulator", &initial_accumulator, 0, 1e6, "adagrad, rowwise_adagrad");
  fields.Range("weight_decay", &weight_decay, 0, 1e6,
               "of the rows that a batch looks up, once per step");
  fields.Choice("weight_decay_mode", &weight_decay_mode, {"decoupled", "l2"},
                "w *= 1 - learning_rate * weight_decay, or gradient += weight_decay * w");
  fields.Require(weight_decay_mode != "decoupled" || learning_rate * weight_decay < 1,
                 "weight_decay", kTooMuchDecay);
}

void ScheduleConfig::Describe(ConfigFields& fields) {
  fields.Range("warmup_steps", &warmup_steps, 0, kMaxSteps, "linear from 0");
  fields.Range("decay_start_step", &decay_start_step, 0, kMaxSteps);
  fields.Range("decay_steps", &decay_steps, 0, kMaxSteps, "polynomial to 0; 0: no decay");
  fields.Range("decay_power", &decay_power, 0.1, 10);
}

void OptimizerConfig::Describe(ConfigFields& fields) {
  fields.Section("dense", &dense, "of the MLPs and the cross network");
  fields.Section("sparse", &sparse,
                 "of the embedding tables; updates are deduplicated and deterministic");
  fields.Section("schedule", &schedule, "multiplies both learning rates");
  fields.Range("max_gradient_norm", &max_gradient_norm, 0, 1e30,
               "clip the norm of dense and embedding gradients together; 0: never");
}

Precision PrecisionOf(const NumericsConfig& config) {
  if (config.precision == "fp32" || config.precision == "tf32") return Precision::kFloat32;
  if (config.precision == "bf16") return Precision::kBFloat16;
  Fail(ErrorCode::kConfig, "numerics.precision: '{}' is unknown", config.precision);
}

void NumericsConfig::Describe(ConfigFields& fields) {
  fields.Range(
      "virtual_workers", &virtual_workers, 1, 1024,
      "the unit of arithmetic and the maximum number of workers; changing it changes rounding");
  fields.Require(IsPowerOfTwo(virtual_workers), "virtual_workers", "must be a power of two");
  fields.Choice("isa", &isa, {"auto", "sse4", "avx2", "avx512", "avx512_bf16", "amx", "neon"},
                "instruction set class to pin; amx is emulated where there is none");
  fields.Choice("precision", &precision, {"fp32", "bf16", "tf32"},
                "of weights and activations in matrix products, which accumulate in fp32; tf32 on "
                "GPUs only");
  fields.Choice("embedding_precision", &embedding_precision, kFloatTypes,
                "of tables in memory and files; 16-bit rows are rounded stochastically");
  fields.Range("row_blocks", &row_blocks, 0, kMaxRowBlocks,
               "parts of a table that can be on different workers; 0: each at most 128 MiB; "
               "changing it changes rounding");
  fields.Require(row_blocks == 0 || IsPowerOfTwo(row_blocks), "row_blocks",
                 "must be 0 or a power of two");
  fields.Range("column_blocks", &column_blocks, 1, 4096,
               "the same by columns; changing it changes rounding");
}

void ShardingConfig::Describe(ConfigFields& fields) {
  fields.Choice("default", &default_sharding, ShardingNames(), "of tables not named in tables");
  fields.Field("tables", &tables, "by feature name: the same words");
  fields.Field("plan", &plan, "a file made by `renzan plan --output`, instead of both");
  for (const auto& [name, sharding] : tables)
    fields.Require(std::find(ShardingNames().begin(), ShardingNames().end(), sharding) !=
                       ShardingNames().end(),
                   "tables",
                   fmt::format("has '{}' for {}: allowed are {}", sharding, name,
                               fmt::join(ShardingNames(), ", ")));
}

void CommConfig::Describe(ConfigFields& fields) {
  fields.Choice("backend", &backend, {"auto", "local", "gloo", "mpi"});
  fields.Choice("forward", &forward, RowCodecNames(),
                "codec of pooled embeddings; int8 and int4 share a power of two per row");
  fields.Choice("backward", &backward, RowCodecNames(), "codec of their gradients");
  fields.Range(
      "backward_scale", &backward_scale, 0, int64_t{1} << 40,
      "fp16 only: scale of these gradients on the wire, a power of two; 0: from the batch size");
  fields.Require(backward_scale == 0 || IsPowerOfTwo(backward_scale), "backward_scale",
                 "must be 0 or a power of two");
  fields.Range("error_feedback_rows", &error_feedback_rows, 0, int64_t{1} << 30,
               "add what backward rounds away to the row's next gradient, for as many rows per "
               "table and virtual worker, a power of two; 0: never");
  fields.Require(error_feedback_rows == 0 || IsPowerOfTwo(error_feedback_rows),
                 "error_feedback_rows", "must be 0 or a power of two");
  fields.Require(error_feedback_rows == 0 || backward != "fp32", "error_feedback_rows",
                 "needs a codec that rounds: set backward to bf16, fp16, int8 or int4");
  fields.Field("guard", &guard,
               "at reports, compare what backward rounds away with the gradients' own noise");
  fields.Choice("dense", &dense, kFloatTypes,
                "codec of dense gradients, at every node of the tree");
  fields.Range("timeout_seconds", &timeout_seconds, 0.1, 86400, "of one exchange");
}

double CheckpointConfig::every_seconds() const { return ParseDuration(every).value_or(0); }

void CheckpointConfig::Describe(ConfigFields& fields) {
  fields.Field("dir", &dir,
               "shared by all workers, or s3://bucket/prefix; RUN/checkpoints when empty");
  fields.Field("stage", &stage,
               "for checkpoints in a store: a directory on a local disk where files are written "
               "first, so that training is done with them sooner; empty: uploaded from memory");
  fields.Require(!IsInStore(stage), "stage", "must be a directory of this machine");
  fields.Field("every", &every, "such as 90s, 10m or 1h; 0: not by time");
  fields.Require(ParseDuration(every).has_value(), "every",
                 "must be a duration such as 90s, 10m or 1h, or 0");
  fields.Range("every_steps", &every_steps, 0, kMaxSteps, "0: not by steps");
  fields.Range("keep", &keep, 1, 1000000, "how many to keep, in addition to their bases");
  fields.Field("incremental", &incremental,
               "write only the rows changed since the last full checkpoint, while that is smaller");
  fields.Choice("quantize", &quantize, {"none", "int8"},
                "rows of incremental checkpoints; with int8, resuming from one is not bit-exact");
  fields.Range("max_copies_mib", &max_copies_mib, 0, int64_t{1} << 30,
               "a worker's memory for copies of rows that change before a checkpoint has written "
               "them; beyond it, training waits; 0: what is left");
}

double ElasticConfig::grow_after_seconds() const { return ParseDuration(grow_after).value_or(0); }

void ElasticConfig::Describe(ConfigFields& fields) {
  fields.Range("min", &min, 0, 1024,
               "fewest workers to continue with when some die; 0: as many as at the start");
  fields.Range("max", &max, 0, 1024, "workers to start when `workers` is 0");
  fields.Require(max == 0 || min <= max, "min", "must be at most max");
  fields.Range("max_restarts", &max_restarts, 0, 1000000, "after a worker dies");
  fields.Range("backoff_seconds", &backoff_seconds, 0, 3600,
               "before the first restart; doubled for each further one");
  fields.Field("grow_after", &grow_after,
               "once fewer workers have run for so long, such as 90s, 10m or 1h, all are started "
               "again; 0: never");
  fields.Require(ParseDuration(grow_after).has_value(), "grow_after",
                 "must be a duration such as 90s, 10m or 1h, or 0");
}

void TrainConfig::Describe(ConfigFields& fields) {
  fields.Field("seed", &seed);
  fields.Choice("device", &device, {"cpu", "cuda"},
                "where workers compute; cuda: on a GPU each, whose class determines the bits");
  fields.Section("data", &data);
  fields.Section("features", &features,
                 "the columns a dataset must have; recorded by training, any when empty");
  fields.Section("model", &model);
  fields.Section("training", &training);
  fields.Section("optimizer", &optimizer);
  fields.Section("numerics", &numerics);
  fields.Section("sharding", &sharding, "which worker holds what; never changes the result");
  fields.Section("comm", &comm);
  fields.Section("checkpoint", &checkpoint, "written while training continues");
  fields.Section("elastic", &elastic, "restarts of workers on this machine");
  fields.Range("workers", &workers, 0, 1024,
               "processes on this machine; 0: as many as elastic.max and the cores allow, or one");
  fields.Range("threads", &threads, 0, 1024,
               "per worker; 0: share the CPUs available to this process");
  fields.Field("check_memory", &check_memory,
               "refuse to start if the workers would need more memory than there is");
  fields.Field("run_dir", &run_dir, "where logs and the model go; runs/NAME-TIME when empty");
  fields.Require(
      training.batch_size % numerics.virtual_workers == 0, "training",
      fmt::format("has batch_size {}, which must be a multiple of numerics.virtual_workers ({})",
                  training.batch_size, numerics.virtual_workers));
  fields.Require(numerics.precision != "tf32" || device == "cuda", "numerics",
                 "has precision tf32, which needs device: cuda");
  fields.Require(!training.watches_evaluations() || !data.eval.path.empty(), "training",
                 "has early_stopping.patience or keep_best, which need data.eval.path");
  fields.Require(
      !training.watches_evaluations() || training.eval_every > 0 || training.eval_every_epochs > 0,
      "training",
      "has early_stopping.patience or keep_best, which need eval_every or "
      "eval_every_epochs");
  fields.Require(
      !training.keep_best || checkpoint.quantize == "none", "checkpoint",
      "has quantize, which training.keep_best does not allow: the best model must be exact");
  fields.Require(model.embedding_dim % numerics.column_blocks == 0, "numerics",
                 fmt::format("has column_blocks {}, which must divide model.embedding_dim ({})",
                             numerics.column_blocks, model.embedding_dim));
  for (const auto& [name, table] : model.tables) {
    const int64_t dim = table.embedding_dim > 0 ? table.embedding_dim : model.embedding_dim;
    const int blocks = table.column_blocks > 0 ? table.column_blocks : numerics.column_blocks;
    fields.Require(dim % blocks == 0, table.column_blocks > 0 ? "model" : "numerics",
                   fmt::format("has column_blocks {}{}, which must divide {}embedding_dim ({})",
                               blocks, table.column_blocks > 0 ? " for table " + name : "",
                               table.column_blocks > 0 ? "" : "model.tables." + name + ".", dim));
  }
  fields.Require(workers <= numerics.virtual_workers, "workers",
                 TooManyWorkers(workers, numerics.virtual_workers));
  fields.Require(elastic.max <= numerics.virtual_workers, "elastic",
                 "has max " + TooManyWorkers(elastic.max, numerics.virtual_workers));
  fields.Require(workers == 0 || elastic.max == 0 || workers <= elastic.max, "workers",
                 "must be at most elastic.max");
  fields.Require(workers == 0 || workers >= elastic.min, "workers", "must be at least elastic.min");
}

}  // namespace renzan
