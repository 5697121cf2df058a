#include "renzan/embedding/shard.h"

#include <cmath>

#include "renzan/base/philox.h"
#include "renzan/embedding/initial_values.h"

namespace renzan {
namespace {

DrawRow InitialRows(const TableSpec& table, const Shard& shard, const ShardRows& rows,
                    uint64_t seed) {
  const uint64_t key = PhiloxKey(seed, ("init/embedding." + table.name + ".weight").c_str());
  const float bound =
      static_cast<float>(std::sqrt(1.0 / static_cast<double>(table.num_embeddings)));
  const int64_t columns = table.block_columns(), first_column = shard.column_block * columns;
  return [=](int64_t row, std::span<float> values) {
    DrawInitialRow(key, bound, rows.OfTable(row), first_column, values);
  };
}

}  // namespace

EmbeddingShard::EmbeddingShard(const TableSpec& of_table, const Shard& of_plan, FloatType type,
                               const SparseOptimizerOptions& optimizer,
                               InitialValues initial_values, uint64_t seed, ThreadPool* pool)
    : table(of_table),
      shard(of_plan),
      rows(table, shard.row_blocks),
      store({.type = type,
             .dim = table.block_columns(),
             .state_width = StateFloatsPerRow(optimizer.type, table.block_columns())},
            rows.size(),
            initial_values == InitialValues::kDraw ? InitialRows(table, shard, rows, seed)
                                                   : DrawRow(),
            static_cast<float>(optimizer.initial_accumulator), pool),
      rounding_key(PhiloxKey(seed, ("rounding/embedding." + table.name + ".weight").c_str())) {
  for (int i = 0; i < rows.num_blocks(); ++i) {
    const int64_t first = rows.first()[static_cast<size_t>(i)];
    const int64_t size = rows.first()[static_cast<size_t>(i) + 1] - first;
    blocks.push_back({.row_block = shard.row_blocks.begin + i,
                      .first_row = first,
                      .num_rows = size,
                      .dirty = RowSet(size),
                      .weights_view = nullptr,
                      .state_view = nullptr});
  }
}

}  // namespace renzan
