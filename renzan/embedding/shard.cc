#include "renzan/embedding/shard.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "renzan/base/philox.h"

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
  const size_t width = static_cast<size_t>(dim()), first = static_cast<size_t>(first_column());
  for (size_t block = 0; block < blocks.size(); ++block) {
    const size_t first_row = static_cast<size_t>(blocks[block].first_row);
    const auto draw = [&](int, size_t begin, size_t end) {
      std::vector<float> values(width);
      Philox::Block words;
      for (size_t row = first_row + begin; row < first_row + end; ++row) {
        const int64_t of_table_row = rows.Stride() * static_cast<int64_t>(row) + rows.Offset(block);
        for (size_t i = 0; i < width; ++i) {
          const size_t column = first + i;
          if (i == 0 || column % 4 == 0)
            words = Philox::Draw(key, static_cast<uint64_t>(of_table_row), column / 4);
          values[i] = bound * (2.0f * Philox::Uniform(words[column % 4]) - 1.0f);
        }
        weights.Set(row * width, values);
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
