#pragma once

// What a sharding plan means for one worker: which shards each worker holds, and where the lookups
// of its own samples go.

#include <cstdint>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/embedding/shard_rows.h"
#include "renzan/plan/sharding_plan.h"

namespace renzan {

class ShardMap {
 public:
  // The plan must have been checked (CheckPlan).
  ShardMap(std::vector<TableSpec> tables, ShardingPlan plan, int world_size, int rank,
           int virtual_workers, int64_t batch);

  const std::vector<TableSpec>& tables() const { return tables_; }
  const std::vector<Shard>& shards() const { return plan_.shards; }
  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(held_.size()); }

  // The shards that a worker holds, replicated ones too; indices into shards().
  const std::vector<size_t>& held_by(int rank) const { return held_[static_cast<size_t>(rank)]; }
  const std::vector<size_t>& held() const { return held_by(rank_); }

  // The shards of one column block of a table, in the order of their row blocks.
  const std::vector<size_t>& shards_of(size_t table, int column_block) const {
    return of_column_[table][static_cast<size_t>(column_block)];
  }

  const TableSpec& table_of(size_t shard) const { return tables_[shards()[shard].table]; }
  const ShardRows& rows_of(size_t shard) const { return rows_[shard]; }
  // The shard of the first column block that holds a row block.
  size_t shard_of_block(size_t table, int64_t row_block) const {
    return of_block_[table][static_cast<size_t>(row_block)];
  }
  // Whether a bag may have any number of lookups in the shard, rather than always one.
  bool is_jagged(size_t shard) const {
    return table_of(shard).multi_hot || rows_[shard].num_blocks() < table_of(shard).row_blocks;
  }
  int64_t columns_of(size_t shard) const { return table_of(shard).block_columns(); }
  // Each table's bags of a sample, one table after another.
  IndexRange bags_of(size_t table) const { return bags_[table]; }
  int num_bags() const { return bags_.empty() ? 0 : bags_.back().end; }

  int virtual_workers() const { return static_cast<int>(assigned_.size()); }
  int64_t batch() const { return batch_; }
  int64_t samples_per_virtual_worker() const { return batch_ / virtual_workers(); }
  // The virtual workers assigned to a worker, and the reverse.
  IndexRange assigned_to(int rank) const { return range_[static_cast<size_t>(rank)]; }
  IndexRange own() const { return assigned_to(rank_); }
  int rank_of(int virtual_worker) const { return assigned_[static_cast<size_t>(virtual_worker)]; }
  int64_t samples_of(int rank) const {
    return assigned_to(rank).size() * samples_per_virtual_worker();
  }
  // The bags of a virtual worker's samples in a table.
  int64_t bags_per_virtual_worker(size_t table) const {
    return samples_per_virtual_worker() * bags_of(table).size();
  }

 private:
  std::vector<TableSpec> tables_;
  ShardingPlan plan_;
  int rank_;
  int64_t batch_;
  std::vector<ShardRows> rows_;                              // by shard
  std::vector<std::vector<size_t>> held_;                    // by rank
  std::vector<std::vector<std::vector<size_t>>> of_column_;  // by table and column block
  std::vector<std::vector<size_t>> of_block_;                // by table and row block
  std::vector<IndexRange> bags_;                             // by table
  std::vector<IndexRange> range_;                            // by rank
  std::vector<int> assigned_;                                // by virtual worker
};

}  // namespace renzan
