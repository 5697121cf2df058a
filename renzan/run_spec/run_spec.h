#pragma once

// A run, resolved: what its configuration and its dataset mean for the parts of the trainer. It is
// made once; each part takes what it needs, and none reads the configuration again.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/sampled_negatives.h"
#include "renzan/model/loss.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/plan/table_spec.h"
#include "renzan/tensor/float_codec.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

// How values are computed.
struct Numerics {
  int64_t batch = 1;  // samples of a step, over all workers
  int virtual_workers = 1;
  bool on_gpu = false;                         // at least the dense part
  Precision precision = Precision::kFloat32;   // of products
  bool tf32 = false;                           // for products of float32, on a GPU
  FloatType rows = FloatType::kFloat32;        // of tables in memory
  RowCodec forward = RowCodec::kFloat32;       // of pooled rows on the wire
  RowCodec backward = RowCodec::kFloat32;      // of their gradients
  float backward_scale = 1;                    // gradients are multiplied by it for sending
  int64_t error_feedback_rows = 0;             // see ErrorFeedbackSlots
  FloatType dense_wire = FloatType::kFloat32;  // of dense gradients, at every node of the tree

  int64_t samples() const { return batch / virtual_workers; }  // per virtual worker
};

struct LearningRates {
  double dense = 0, sparse = 0;
  ScheduleConfig schedule;                        // multiplies both (schedule.h)
  std::map<std::string, BlockRateConfig> blocks;  // whose parameters are trained otherwise
  double max_gradient_norm = 0;                   // 0: no clipping
};

// What else uses a worker's memory.
struct MemoryUse {
  bool data_in_store = false, checkpoints_in_store = false;
  bool evaluates = false;
  int64_t ranking = 0;     // bytes for the items of training.ranking
  int64_t grouped = 0;     // rows that training.group_by groups, for each output
  int64_t key_groups = 0;  // bytes for the groups of a key
  int64_t max_copies = 0;  // CheckpointConfig::max_copies_mib in bytes; 0: what is left
};

struct RunSpec {
  uint64_t seed = 0;
  ModelOptions model;
  LossOptions loss;
  std::vector<TableSpec> tables;
  // Those that look them up: indices of the dataset's categorical features, one table's after
  // another; behind those, `negatives`.
  std::vector<size_t> features;
  std::vector<NegativesOptions> negatives;  // those of Batch::negatives, in training
  DenseOptimizerOptions dense_optimizer;
  SparseOptimizerOptions sparse_optimizer;
  LearningRates learning_rates;
  Numerics numerics;
  ShardingConfig sharding;  // which plan to make
  MemoryUse memory;
};

// `pooling_factors`: estimated mean lookups per sample of each categorical feature, used only for
// placement. Throws kConfig for unknown words, because a configuration may not have come from a
// validated file, and for settings of features that the dataset does not have.
RunSpec MakeRunSpec(const TrainConfig& config, const DatasetSchema& schema,
                    std::span<const double> pooling_factors);

// Throws kConfig if a table pools means of bags in this data whose weights are below 0. MakeRunSpec
// does, too; this is for data that are only evaluated, and before there is a run directory.
void CheckBagWeights(const ModelConfig& model, const DatasetSchema& schema);

// The first feature of a table: an index of the dataset's categorical features.
size_t FirstFeatureOf(const RunSpec& spec, size_t table);

// What it costs that first-order weights share rows with embeddings, a sentence for people, or "".
std::string EffectsOfSharedRows(const RunSpec& spec);

// Throws kConfig if an output learns from a label that the training data lack, or by a loss that
// its label or the data cannot have, or if no output's loss has the settings of training.loss.
// `outputs`: of the model that the data complete (ModelOptionsOf).
void CheckTasks(const LossConfig& loss, const std::vector<ModelOutput>& outputs,
                const DatasetSchema& schema);

// The model's options, which are known without the data's values.
ModelOptions ModelOptionsOf(const TrainConfig& config, const DatasetSchema& schema);

// The power of two by which gradients of pooled embeddings are scaled on the wire, so that float16
// can represent them: the configured value, or else 256 * batch size, rounded up to a power of two.
// A sample's gradient may then be 2^-32 to 255 for any batch size. 1 for other types, which have
// the range of float32.
float BackwardScale(const TrainConfig& config);

}  // namespace renzan
