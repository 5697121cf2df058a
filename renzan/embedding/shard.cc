#include "renzan/embedding/shard.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/embedding/initial_values.h"

namespace renzan {

EmbeddingShard::EmbeddingShard(const TableSpec& of_table, const Shard& of_plan, FloatType type,
                               const SparseOptimizerOptions& optimizer,
                               InitialValues initial_values, uint64_t seed, ThreadPool& pool)
    : table(of_table),
      shard(of_plan),
      rows(table, shard.row_blocks),
      weights(type, rows.size(), table.block_columns()),
      state_width(StateFloatsPerRow(optimizer.type, weights.dim())),
      state(static_cast<size_t>(rows.size() * state_width)),
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
  if (initial_values == InitialValues::kZero) return;
  const uint64_t key = PhiloxKey(seed, ("init/embedding." + table.name + ".weight").c_str());
  const float bound =
      static_cast<float>(std::sqrt(1.0 / static_cast<double>(table.num_embeddings)));
  const size_t width = static_cast<size_t>(dim());
  constexpr size_t kValues = 1 << 12;  // at a time, so that they stay in a cache
  const size_t rows_at_once = std::max<size_t>(1, kValues / width);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const size_t first_row = static_cast<size_t>(blocks[block].first_row);
    const auto draw = [&](int, size_t begin, size_t end) {
      std::vector<float> values(rows_at_once * width);
      for (size_t row = first_row + begin; row < first_row + end; row += rows_at_once) {
        const size_t n = std::min(rows_at_once, first_row + end - row);
        const auto drawn = std::span(values).first(n * width);
        DrawInitialRows(key, bound, rows.Stride() * static_cast<int64_t>(row) + rows.Offset(block),
                        rows.Stride(), first_column(), dim(), drawn);
        weights.Set(row * width, drawn);
      }
    };
    pool.ParallelRanges(static_cast<size_t>(blocks[block].num_rows), draw);
  }
  std::fill_n(state.data(), state.size(), static_cast<float>(optimizer.initial_accumulator));
}

std::span<const std::byte> EmbeddingShard::WeightsOf(const Block& block) const {
  return weights.bytes().subspan(static_cast<size_t>(block.first_row * weights.row_bytes()),
                                 static_cast<size_t>(block.num_rows * weights.row_bytes()));
}

bool EmbeddingShard::AllFinite(const Block& block) const {
  return weights.AllFinite(static_cast<size_t>(block.first_row * dim()),
                           static_cast<size_t>(block.num_rows * dim()));
}

std::span<float> EmbeddingShard::StateOf(const Block& block) {
  return state.span().subspan(static_cast<size_t>(block.first_row * state_width),
                              static_cast<size_t>(block.num_rows * state_width));
}

}  // namespace renzan
