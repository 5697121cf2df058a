#include "renzan/plan/sharding_plan.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

std::string Describe(IndexRange row_blocks) {
  return fmt::format("row blocks [{}, {})", row_blocks.begin, row_blocks.end);
}

// Checks the shards of one column block of a table, which are in order.
void CheckRows(std::span<const Shard> shards, const TableSpec& table, int world_size,
               const std::string& what) {
  int next = 0;
  for (const Shard& shard : shards) {
    const IndexRange rows = shard.row_blocks;
    if (rows.begin < 0 || rows.begin >= rows.end || rows.end > table.row_blocks)
      Fail(ErrorCode::kConfig, "{} has a shard of {}, but the table has {}", what, Describe(rows),
           Counted(table.row_blocks, "row block"));
    if (!std::has_single_bit(static_cast<unsigned>(rows.size())) || rows.begin % rows.size() != 0)
      Fail(ErrorCode::kConfig,
           "{} has a shard of {}: a shard has 1, 2, 4, ... blocks and begins at a multiple of that",
           what, Describe(rows));
    if (shard.rank != kEveryRank && (shard.rank < 0 || shard.rank >= world_size))
      Fail(ErrorCode::kConfig, "{}: {} on worker {}, but the plan is for {}", what, Describe(rows),
           shard.rank, Counted(world_size, "worker"));
    if (rows.begin < next)
      Fail(ErrorCode::kConfig, "{}: row block {} is in two shards", what, rows.begin);
    if (rows.begin > next) Fail(ErrorCode::kConfig, "{}: row block {} is in no shard", what, next);
    if (table.rows_of_blocks(rows) > kMostShardRows)
      Fail(ErrorCode::kConfig,
           "{}: {} have {}, but at most 2^31 - 1 can be in one shard: raise "
           "numerics.row_blocks, or model.tables.{}.row_blocks (which changes rounding)",
           what, Describe(rows), Counted(table.rows_of_blocks(rows), "row"), table.name);
    next = rows.end;
  }
  if (next != table.row_blocks)
    Fail(ErrorCode::kConfig, "{}: row block {} is in no shard", what, next);
}

}  // namespace

std::vector<IndexRange> AlignedRanges(IndexRange blocks) {
  std::vector<IndexRange> ranges;
  while (blocks.begin < blocks.end) {
    int size = blocks.begin == 0 ? blocks.end : blocks.begin & -blocks.begin;
    size = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(size, blocks.size()))));
    ranges.push_back({blocks.begin, blocks.begin + size});
    blocks.begin += size;
  }
  return ranges;
}

std::vector<IndexRange> AlignedRanges(const TableSpec& table, IndexRange blocks,
                                      int64_t most_rows) {
  std::vector<IndexRange> ranges = AlignedRanges(blocks);
  for (size_t i = 0; i < ranges.size();) {
    IndexRange& range = ranges[i];
    if (range.size() == 1 || table.rows_of_blocks(range) <= most_rows) {
      ++i;
      continue;
    }
    const int middle = range.begin + range.size() / 2;
    const IndexRange upper = {middle, range.end};
    range.end = middle;
    ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i) + 1, upper);
  }
  return ranges;
}

void CheckPlan(const ShardingPlan& plan, std::span<const TableSpec> tables, int world_size,
               const std::string& where) {
  const auto key = [](const Shard& s) {
    return std::make_tuple(s.table, s.column_block, s.row_blocks.begin);
  };
  CHECK(std::is_sorted(plan.shards.begin(), plan.shards.end(),
                       [&](const Shard& a, const Shard& b) { return key(a) < key(b); }));
  auto next = plan.shards.begin();
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& table = tables[t];
    std::vector<IndexRange> rows_of_first;
    for (int column = 0; column < table.column_blocks; ++column) {
      const auto begin = next;
      while (next != plan.shards.end() && next->table == t && next->column_block == column) ++next;
      std::string what = fmt::format("{}: table {}", where, table.name);
      if (table.column_blocks > 1) what += fmt::format(", column block {}", column);
      CheckRows({begin, next}, table, world_size, what);
      std::vector<IndexRange> rows;
      for (auto shard = begin; shard != next; ++shard) rows.push_back(shard->row_blocks);
      if (column == 0) rows_of_first = rows;
      if (rows != rows_of_first)
        Fail(ErrorCode::kConfig,
             "{} is split by rows differently than column block 0: split them alike", what);
    }
    if (next != plan.shards.end() && next->table == t)
      Fail(ErrorCode::kConfig, "{}: table {} has a shard of column block {}, but {}", where,
           table.name, next->column_block, Counted(table.column_blocks, "column block"));
  }
  CHECK(next == plan.shards.end());
}

}  // namespace renzan
