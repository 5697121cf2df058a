#include "renzan/embedding/table_tensors.h"

#include <fmt/format.h>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/manifest.h"

namespace renzan {

BlockKey KeyOf(const EmbeddingShard& shard, const EmbeddingShard::Block& block) {
  return {.table = EscapeName(shard.table.name),
          .row_block = block.row_block,
          .row_blocks = shard.table.row_blocks,
          .column_block = shard.shard.column_block,
          .column_blocks = shard.table.column_blocks};
}

std::string WeightKey(const EmbeddingShard& shard, const EmbeddingShard::Block& block) {
  return KeyOf(shard, block).Key() + ".weight";
}

std::string StateKey(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                     const EmbeddingShard::Block& block) {
  return fmt::format("{}/{}", WeightKey(shard, block), InfoOf(optimizer).state);
}

std::vector<int64_t> StateShape(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                                int64_t rows) {
  const int64_t width = shard.store->layout().state_width;
  // A whole table of one column keeps the shape that it has always had.
  const bool state_is_per_row = InfoOf(optimizer).state_per_row > 0;
  const bool is_column = shard.table.column_blocks > 1 && !state_is_per_row;
  if (width == 1 && !is_column) return {rows};
  return {rows, width};
}

ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker) {
  const std::string key =
      fmt::format("{}{}.{}", kErrorFeedbackPrefix, virtual_worker, EscapeName(table.name));
  return {key + ".keys", key + ".residuals"};
}

}  // namespace renzan
