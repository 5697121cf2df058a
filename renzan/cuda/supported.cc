#include <algorithm>
#include <string_view>

#include "renzan/base/error.h"
#include "renzan/cuda/load.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/dot.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/zeros.h"

namespace renzan {
namespace {

// The blocks of the two models that the engine computes (dense_engine.h).
constexpr std::string_view kTypesWithKernels[] = {Concat::kType, Cross::kType, Dot::kType,
                                                  Mlp::kType, Zeros::kType};

bool HasKernels(const GraphBlock& block) {
  return std::ranges::find(kTypesWithKernels, block.options.type()) != std::end(kTypesWithKernels);
}

// "a", "a and b", "a, b and c"; of many the first ten, and how many more there are.
std::string ListOf(std::vector<std::string> names) {
  constexpr size_t kMostNamed = 10;
  if (names.size() > kMostNamed) {
    const size_t more = names.size() - kMostNamed;
    names.resize(kMostNamed);
    names.push_back(fmt::format("{} more", more));
  }
  if (names.size() == 1) return names[0];
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// The engine computes the graphs of two models of the catalogue. Throws BlockError for any other,
// with the blocks that it has no kernels for.
void CheckGraph(const ModelOptions& model) {
  if (HasDotInteraction(model) || model.type == "dlrm_dcnv2") return;
  std::vector<std::string> names;
  std::string where;
  for (const GraphBlock& block : GraphOf(model)) {
    if (HasKernels(block)) continue;
    if (names.empty() && model.type == kBlocksType) where = block.where;
    const std::string type = block.options.type();
    names.push_back(block.name == type ? type : fmt::format("{} ({})", block.name, type));
  }
  if (names.empty())
    Fail(ErrorCode::kConfig,
         "device: cuda runs no graph of blocks but those of model.type: dlrm and dlrm_dcnv2, by "
         "these names; model.type is {}: use one of them, or device: cpu",
         model.type);
  throw BlockError(
      where, fmt::format("device: cuda has no kernels for the {} {} (of model.type: {}), and runs "
                         "only model.type: dlrm and dlrm_dcnv2: use one of them, or device: cpu",
                         names.size() == 1 ? "block" : "blocks", ListOf(names), model.type));
}

}  // namespace

void CheckDeviceSupports(const ModelOptions& model, const LossOptions& loss,
                         const SparseOptimizerOptions& sparse, bool one_learning_rate) {
  const auto reject = [](const std::string& what) {
    Fail(ErrorCode::kConfig, "device: cuda does not support {}: use device: cpu", what);
  };
  CheckGraph(model);
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
