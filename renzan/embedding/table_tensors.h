#pragma once

// The keys and shapes under which the tensors of tables are saved (docs/formats/checkpoint.md).

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/checkpoint/block_key.h"
#include "renzan/embedding/shard.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/plan/table_spec.h"

namespace renzan {

BlockKey KeyOf(const EmbeddingShard& shard, const EmbeddingShard::Block& block);
// The keys of the block's weights [rows, dim] and of their optimizer state.
std::string WeightKey(const EmbeddingShard& shard, const EmbeddingShard::Block& block);
std::string StateKey(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                     const EmbeddingShard::Block& block);
// The shape of the optimizer state of `rows` rows of the shard: [rows] or [rows, dim].
std::vector<int64_t> StateShape(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                                int64_t rows);

// The names of the tensors that hold a table's error feedback.
struct ErrorFeedbackKeys {
  std::string keys, residuals;
};
ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker);

}  // namespace renzan
