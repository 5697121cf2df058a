#include "renzan/embedding/whole_tables.h"

#include <algorithm>
#include <utility>

#include "renzan/embedding/block_order.h"
#include "renzan/embedding/pool_bags.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan {
namespace {

// Some bags of a table, as PoolBags takes them: without empty ones.
struct LookedUp {
  std::vector<int32_t> rows, offsets;
  std::vector<int32_t> lengths;  // of all bags; empty when each has one row
  std::vector<float> weights;    // of the rows; empty when each is 1
  size_t num_bags = 0;
};

void LookUpRows(const TableSpec& table, const ShardRows& rows, const IdsView& ids, int64_t first,
                int64_t n, LookedUp* out) {
  out->rows.clear();
  out->offsets.clear();
  out->lengths.clear();
  out->weights.clear();
  out->num_bags = static_cast<size_t>(n);
  const auto add = [&](size_t at) {
    out->rows.push_back(rows.Local(ids.values[at]));
    if (table.weighted) out->weights.push_back(ids.weights[at]);
  };
  if (ids.offsets.empty()) {
    for (int64_t i = first; i < first + n; ++i) add(static_cast<size_t>(i));
    return;
  }
  thread_local std::vector<uint64_t> scratch;
  out->offsets.push_back(0);
  for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(first + n); ++i) {
    const int32_t length = ids.offsets[i + 1] - ids.offsets[i];
    out->lengths.push_back(length);
    if (length == 0) continue;
    ForEachByBlock(table, ids.values, ids.offsets[i], ids.offsets[i + 1], &scratch, add);
    out->offsets.push_back(static_cast<int32_t>(out->rows.size()));
  }
  out->num_bags = out->offsets.size() - 1;
}

}  // namespace

bool WholeTables::CanHold(std::span<const TableSpec> tables) {
  return std::all_of(tables.begin(), tables.end(),
                     [](const TableSpec& table) { return table.num_embeddings <= kMostShardRows; });
}

WholeTables::WholeTables(WholeTablesOptions options, ThreadPool& pool)
    : options_(std::move(options)) {
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    const TableSpec& table = options_.tables[t];
    first_shard_.push_back(shards_.size());
    for (int column = 0; column < table.column_blocks; ++column)
      shards_.emplace_back(
          table,
          Shard{.table = t, .row_blocks = {0, table.row_blocks}, .column_block = column, .rank = 0},
          options_.rows, SparseOptimizerOptions{.type = SparseOptimizerType::kSgd},
          InitialValues::kZero, /*seed=*/0, &pool, options_.make_store);
  }
}

void WholeTables::Pool(std::span<const IdsView> ids, int64_t first, int64_t n,
                       std::span<const BagPlace> places, std::span<BlockedMatrix> matrices) const {
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    const auto bags = static_cast<size_t>(options_.tables[t].bags());
    PoolTable(t, ids[t], first, n, places.first(bags), matrices);
    places = places.subspan(bags);
  }
}

void WholeTables::PoolTable(size_t t, const IdsView& ids, int64_t first, int64_t n,
                            std::span<const BagPlace> places,
                            std::span<BlockedMatrix> matrices) const {
  const TableSpec& table = options_.tables[t];
  const RowCodec wire = options_.forward;
  const size_t dim = static_cast<size_t>(table.block_columns());
  thread_local LookedUp looked_up;
  thread_local std::vector<int32_t> slots;
  thread_local std::vector<float> pooled, zeros;
  const int64_t bags = std::ssize(places);  // per sample
  LookUpRows(table, shards_[first_shard_[t]].rows, ids, first * bags, n * bags, &looked_up);
  pooled.resize(looked_up.num_bags * dim);
  zeros.assign(dim, 0.0f);
  for (int c = 0; c < table.column_blocks; ++c) {
    const EmbeddingShard& shard = shards_[first_shard_[t] + static_cast<size_t>(c)];
    {
      const PinnedRows pinned(*shard.store, looked_up.rows, &slots);
      PoolBags(shard, wire,
               {looked_up.rows.data(), pinned.slots().data(), looked_up.offsets, looked_up.num_bags,
                table.weighted ? looked_up.weights.data() : nullptr},
               pooled.data());
    }
    float* row = pooled.data();
    for (int64_t i = 0; i < n * bags; ++i) {
      const BagPlace& place = places[static_cast<size_t>(i % bags)];
      const auto set = [&](const float* values) {
        matrices[place.matrix].SetRow(i / bags, place.column + c * table.block_columns(), values,
                                      static_cast<int64_t>(dim));
      };
      const int32_t length =
          looked_up.lengths.empty() ? 1 : looked_up.lengths[static_cast<size_t>(i)];
      if (length == 0) {
        set(zeros.data());
        continue;
      }
      RoundTripRow(wire, {row, dim});
      if (table.divides_by_length() && length > 1)
        ScaleValues(1.0f / static_cast<float>(length), static_cast<int64_t>(dim), row);
      set(row);
      row += dim;
    }
  }
}

}  // namespace renzan
