#include "renzan/embedding/shard.h"

#include <cmath>
#include <utility>

#include "renzan/base/philox.h"
#include "renzan/embedding/memory_row_store.h"

namespace renzan {
namespace {

InitialRows InitialRowsOf(const TableSpec& table, const SparseOptimizerOptions& optimizer,
                          uint64_t seed) {
  return {.key = PhiloxKey(seed, ("init/embedding." + table.name + ".weight").c_str()),
          .bound = table.initial_bound.value_or(
              static_cast<float>(std::sqrt(1.0 / static_cast<double>(table.num_embeddings)))),
          .state = InitialStateOf(optimizer),
          .distribution = table.initial_values};
}

DrawRow Drawing(const InitialRows& initial, const ShardRows& rows, int64_t first_column) {
  return [=](int64_t row, std::span<float> values) {
    DrawInitialRow(initial, rows.OfTable(row), first_column, values);
  };
}

}  // namespace

EmbeddingShard::EmbeddingShard(const TableSpec& of_table, const Shard& of_plan, FloatType type,
                               const SparseOptimizerOptions& optimizer,
                               InitialValues initial_values, uint64_t seed, ThreadPool* pool,
                               const MakeRowStore& make_store)
    : table(of_table),
      shard(of_plan),
      rows(table, shard.row_blocks),
      initial(InitialRowsOf(table, optimizer, seed)),
      rounding_key(PhiloxKey(seed, ("rounding/embedding." + table.name + ".weight").c_str())) {
  const bool draws = initial_values == InitialValues::kDraw;
  RowStoreOptions options{
      .layout = {.type = type,
                 .dim = table.block_columns(),
                 .state_width = StateFloatsPerRow(optimizer.type, table.block_columns())},
      .rows = rows.size(),
      .draw =
          draws ? Drawing(initial, rows, shard.column_block * table.block_columns()) : DrawRow(),
      .initial_state = initial.state};
  store = make_store ? make_store(std::move(options), pool)
                     : std::make_unique<MemoryRowStore>(std::move(options), pool);
  CHECK(store->slots_are_rows() || store->NeedsPinning());
  if (IdleRowsMove(optimizer) && !table.frozen) idle.emplace(optimizer, rows.size(), draws);
  for (int i = 0; i < rows.num_blocks(); ++i) {
    const int64_t first = rows.first()[static_cast<size_t>(i)];
    const int64_t size = rows.first()[static_cast<size_t>(i) + 1] - first;
    blocks.push_back({.row_block = shard.row_blocks.begin + i,
                      .first_row = first,
                      .num_rows = size,
                      .dirty = RowSet(size),
                      .trained = draws ? std::optional(RowSet(size)) : std::nullopt,
                      .weights_view = nullptr,
                      .state_views = {}});
  }
}

}  // namespace renzan
