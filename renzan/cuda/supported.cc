#include "renzan/base/error.h"
#include "renzan/cuda/load.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/blocks/in_batch_softmax.h"

namespace renzan {

void CheckDeviceSupports(const ModelOptions& model, const LossOptions& loss,
                         const SparseOptimizerOptions& sparse, bool one_learning_rate) {
  const auto refusal = [](const std::string& what) {
    return fmt::format("device: cuda does not support {}: use device: cpu", what);
  };
  const auto reject = [&](const std::string& what) {
    Fail(ErrorCode::kConfig, "{}", refusal(what));
  };
  for (const GraphBlock& block : model.blocks)
    if (block.options.type() == std::string(InBatchSoftmax::kType))
      throw BlockError(block.where,
                       refusal(fmt::format("block {} ({})", block.name, block.options.type())));
  if (!HasDotInteraction(model) && model.type != "dlrm_dcnv2") reject("model.type: " + model.type);
  if (!HasDotInteraction(model) && model.sizes.cross_rank == 0) reject("model.cross_rank: 0");
  if (model.sizes.normalization != "none")
    reject("model.normalization: " + model.sizes.normalization);
  if (const SparseOptimizerInfo& info = InfoOf(sparse.type); !info.runs_on_gpu)
    reject(fmt::format("optimizer.sparse.type: {}", info.name));
  if (sparse.all_rows) reject("optimizer.sparse.rows: all");
  if (!one_learning_rate) reject("model.tables.NAME.learning_rate_factor");
  if (model.outputs.size() > 1) reject("several model.outputs");
  if (loss.tasks[0].weight != 1) reject("model.outputs.NAME.weight");
  if (loss.tasks[0].loss != Loss::kBinaryCrossEntropy)
    reject("model.outputs.NAME.loss: squared_error");
  if (loss.pos_weight != 1) reject("training.loss.pos_weight");
  if (loss.label_smoothing != 0) reject("training.loss.label_smoothing");
  if (loss.sample_weights) reject("training data with sample weights");
  // Kernels move 16 bytes of a bfloat16 row at once.
  const auto check = [&reject](const std::string& key, int64_t dim) {
    if (dim % 8 != 0) reject(fmt::format("{}: {}, which is not a multiple of 8", key, dim));
  };
  if (!model.sequences.empty()) reject("the sequence '" + model.sequences[0].name + "'");
  check("model.embedding_dim", model.embedding_dim);
  for (const TableInput& table : model.tables) {
    const std::string key = "model.tables." + table.name + ".embedding_dim";
    check(key, table.dim);
    if (HasDotInteraction(model) && table.dim != model.embedding_dim)
      reject(fmt::format("{}: {} beside others of {} in model.type: {}", key, table.dim,
                         model.embedding_dim, model.type));
  }
}

}  // namespace renzan
