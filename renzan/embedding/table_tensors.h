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
// The key of the block's weights [rows, dim].
std::string WeightKey(const EmbeddingShard& shard, const EmbeddingShard::Block& block);

// An optimizer state of some rows of a block: [rows] or [rows, dim].
struct StateTensor {
  std::string key;
  std::vector<int64_t> shape;
  StatePart part;  // of the rows' states in their store
};
// One for each state of the optimizer, of `rows` rows.
std::vector<StateTensor> StateTensors(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                                      const EmbeddingShard::Block& block, int64_t rows);

// The names of the tensors that hold a table's error feedback.
struct ErrorFeedbackKeys {
  std::string keys, residuals;
};
ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker);

}  // namespace renzan
