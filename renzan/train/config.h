#pragma once

// The configuration of a training run: one struct per section of the YAML file, each field with its
// default. `numerics`, `data`, `model`, `training`, `optimizer` and the codecs of `comm` determine
// the result; workers, threads, backend and run_dir never do.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/precision.h"
#include "renzan/data/dataset/dataset.h"

namespace renzan {

struct SplitConfig {
  std::string path;           // dataset directory
  std::vector<int64_t> rows;  // [begin, end), or empty for all
  void Describe(ConfigFields& fields);
};

struct DataCacheConfig {
  std::string directory;
  std::string size = "0";
  DataCacheOptions options() const;
  void Describe(ConfigFields& fields);
};

struct DataConfig {
  SplitConfig train, eval;
  DataCacheConfig cache;
  bool shuffle = true;
  bool verify = false;
  bool verify_blocks = true;
  void Describe(ConfigFields& fields);
};

struct TableConfig {
  int64_t embedding_dim = 0;              // 0: as in `model`
  std::string pooling;                    // empty: as in `model`
  int row_blocks = 0, column_blocks = 0;  // 0: as in `numerics`
  double pooling_factor = 0;              // 0: counted in the data
  void Describe(ConfigFields& fields);
};

// The columns that the model expects, recorded with every run and model. If it is set, datasets
// must match it.
struct FeaturesConfig {
  std::vector<std::string> dense, categorical;
  std::vector<int64_t> num_embeddings;  // of `categorical`
  std::vector<std::string> multi_hot;   // those of `categorical` that are
  // The preprocessing, as in DatasetSchema. Empty in models and checkpoints from before it was
  // recorded; dense_transforms also for datasets from that time.
  std::vector<std::string> dense_transforms;  // of `dense`
  std::vector<std::string> vocabularies;      // of `categorical`
  std::string label_rule;
  bool empty() const { return dense.empty() && categorical.empty(); }
  void Describe(ConfigFields& fields);
};

struct ModelConfig {
  std::string type = "dlrm";
  int64_t embedding_dim = 16;
  std::vector<int64_t> bottom_mlp = {512, 256, 64};
  std::vector<int64_t> top_mlp = {512, 256};
  int cross_layers = 3;
  int64_t cross_rank = 512;
  std::string pooling = "sum";                // of multi-hot features without an entry in `tables`
  double dropout = 0;                         // after the hidden layers of both MLPs
  std::map<std::string, TableConfig> tables;  // by feature name
  void Describe(ConfigFields& fields);
};

struct EarlyStoppingConfig {
  std::string metric = "log_loss";
  int64_t patience = 0;  // evaluations; 0: never stop early
  double min_delta = 0;
  void Describe(ConfigFields& fields);
};

struct TrainingConfig {
  int64_t batch_size = 2048;
  double epochs = 1;
  int64_t max_steps = -1;  // -1: no limit; 0: save the initial model
  int64_t log_every = 100;
  int64_t eval_every = 0;  // steps; 0 and 0 epochs: at the end only
  double eval_every_epochs = 0;
  EarlyStoppingConfig early_stopping;
  bool keep_best = false;

  // Whether evaluations decide when training stops or which model is kept.
  bool watches_evaluations() const { return keep_best || early_stopping.patience > 0; }
  void Describe(ConfigFields& fields);
};

struct DenseOptimizerConfig {
  std::string type = "sgd";
  double learning_rate = 0.1;
  double epsilon = 1e-8;
  double beta1 = 0.9, beta2 = 0.999;
  double initial_accumulator = 0;
  double weight_decay = 0;
  void Describe(ConfigFields& fields);
};

struct SparseOptimizerConfig {
  std::string type = "sgd";
  double learning_rate = 0.1;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double weight_decay = 0;
  std::string weight_decay_mode = "decoupled";
  void Describe(ConfigFields& fields);
};

struct ScheduleConfig {
  int64_t warmup_steps = 0;
  int64_t decay_start_step = 0;
  int64_t decay_steps = 0;
  double decay_power = 2;
  void Describe(ConfigFields& fields);
};

struct OptimizerConfig {
  DenseOptimizerConfig dense;
  SparseOptimizerConfig sparse;
  ScheduleConfig schedule;
  double max_gradient_norm = 0;  // 0: no clipping
  void Describe(ConfigFields& fields);
};

struct NumericsConfig {
  int virtual_workers = 8;
  std::string isa = "auto";
  std::string precision = "fp32";
  std::string embedding_precision = "fp32";
  int row_blocks = 0;  // of each table; 0: DefaultRowBlocks
  int column_blocks = 1;
  void Describe(ConfigFields& fields);
};

// Of the values in matrix products: tf32 has those of float32. Throws kConfig for an unknown word,
// because the configuration may not have come from a validated file.
Precision PrecisionOf(const NumericsConfig& config);

// Which worker holds what: never changes the result.
struct ShardingConfig {
  std::string default_sharding = "auto";      // a word of ShardingNames()
  std::map<std::string, std::string> tables;  // by feature name
  std::string plan;                           // a file (plan_file.h), instead of both
  void Describe(ConfigFields& fields);
};

struct CommConfig {
  std::string backend = "auto";
  std::string forward = "fp32", backward = "fp32", dense = "fp32";
  int64_t backward_scale = 0;       // 0: see BackwardScale
  int64_t error_feedback_rows = 0;  // 0: no error feedback
  bool guard = true;
  double timeout_seconds = 60;
  void Describe(ConfigFields& fields);
};

struct CheckpointConfig {
  std::string dir;            // empty: RUN/checkpoints
  std::string stage;          // empty: none
  std::string every = "10m";  // a duration
  int64_t every_steps = 0;
  int keep = 3;
  bool incremental = true;
  std::string quantize = "none";
  int64_t max_copies_mib = 0;  // 0: see MostCopiedBytes

  double every_seconds() const;  // 0: never by time
  void Describe(ConfigFields& fields);
};

struct ElasticConfig {
  int min = 0, max = 0;
  int max_restarts = 3;
  double backoff_seconds = 1;
  std::string grow_after = "10m";  // a duration

  double grow_after_seconds() const;
  void Describe(ConfigFields& fields);
};

struct TrainConfig {
  uint64_t seed = 0;
  std::string device = "cpu";
  DataConfig data;
  FeaturesConfig features;
  ModelConfig model;
  TrainingConfig training;
  OptimizerConfig optimizer;
  NumericsConfig numerics;
  ShardingConfig sharding;
  CommConfig comm;
  CheckpointConfig checkpoint;
  ElasticConfig elastic;
  int workers = 0;  // 0: see NumWorkers
  int threads = 0;  // per worker; 0: share the machine's cores evenly
  bool check_memory = true;
  std::string run_dir;

  void Describe(ConfigFields& fields);
};

// The number of workers to start on a machine with `cores` cores: `workers` if set, else as many as
// `elastic` and the cores allow, else one.
int NumWorkers(const TrainConfig& config, int cores);

// The power of two by which gradients of pooled embeddings are scaled on the wire, so that float16
// can represent them: the configured value, else 256 * batch size, rounded up to a power of two. A
// sample's gradient may then be 2^-32 to 255 for any batch size. 1 for other types, which have
// float32's range.
float BackwardScale(const TrainConfig& config);

// Empty when a run with one configuration can continue with the other without changing a bit of the
// model, else a sentence that names the first key that prevents it: "model.embedding_dim is 16
// there and 8 here". The length of training, evaluation, reporting, paths and placement may differ.
std::string DifferenceThatChangesBits(const TrainConfig& there, const TrainConfig& here);

// The first value that differs between two configurations.
struct ConfigDifference {
  std::string key, there, here;  // "model.embedding_dim", "16", "8"; "unset" if missing
};
std::optional<ConfigDifference> FirstDifference(TrainConfig there, TrainConfig here);

// "= 9 is more than the 8 virtual workers: use ...", to follow the word "workers".
std::string TooManyWorkers(int workers, int virtual_workers);

}  // namespace renzan
