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

std::vector<StateTensor> StateTensors(SparseOptimizerType optimizer, const EmbeddingShard& shard,
                                      const EmbeddingShard::Block& block, int64_t rows) {
  std::vector<StateTensor> tensors;
  const std::span<const SparseState> states = InfoOf(optimizer).states;
  for (size_t i = 0; i < states.size(); ++i) {
    const StatePart part = PartOfState(optimizer, i, shard.dim());
    // A whole table of one column keeps the shape that it has always had.
    const bool is_column = shard.table.column_blocks > 1 && !states[i].per_row;
    tensors.push_back(
        {.key = fmt::format("{}/{}", WeightKey(shard, block), states[i].name),
         .shape = part.width == 1 && !is_column ? std::vector{rows} : std::vector{rows, part.width},
         .part = part});
  }
  return tensors;
}

ErrorFeedbackKeys KeysOfErrorFeedback(const TableSpec& table, int virtual_worker) {
  const std::string key =
      fmt::format("{}{}.{}", kErrorFeedbackPrefix, virtual_worker, EscapeName(table.name));
  return {key + ".keys", key + ".residuals"};
}

}  // namespace renzan
