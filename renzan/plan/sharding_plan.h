#pragma once

// Which worker holds which part of which embedding table. A plan never changes a result, only speed
// and memory.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/plan/table_spec.h"

namespace renzan {

inline constexpr int kEveryRank = -1;

// A rectangle of a table's blocks on one worker, or a copy of it on every worker.
struct Shard {
  size_t table = 0;
  IndexRange row_blocks;  // 2^k blocks from a multiple of 2^k on: a subtree of the pooling's tree
  int column_block = 0;
  int rank = 0;  // or kEveryRank: replicated

  bool on(int some_rank) const { return rank == some_rank || rank == kEveryRank; }
  bool operator==(const Shard&) const = default;
};

// Shards are sorted by table, column block and first row block.
struct ShardingPlan {
  std::vector<Shard> shards;

  bool operator==(const ShardingPlan&) const = default;
};

// Splits [begin, end) into shards' ranges of blocks, each as large as possible.
std::vector<IndexRange> AlignedRanges(IndexRange blocks);

// The same for a table, where no range has more than `most_rows` rows unless it is a single block.
std::vector<IndexRange> AlignedRanges(const TableSpec& table, IndexRange blocks,
                                      int64_t most_rows = kMostShardRows);

// Throws kConfig unless every block of every table is held exactly once (or by every worker), ranks
// are below world_size, the column blocks of a table are split by rows alike, and no shard has more
// than kMostShardRows rows. The message begins with `where`.
void CheckPlan(const ShardingPlan& plan, std::span<const TableSpec> tables, int world_size,
               const std::string& where);

}  // namespace renzan
