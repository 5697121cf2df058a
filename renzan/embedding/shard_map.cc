#include "renzan/embedding/shard_map.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {

ShardMap::ShardMap(std::vector<TableSpec> tables, ShardingPlan plan, int world_size, int rank,
                   int virtual_workers, int64_t batch)
    : tables_(std::move(tables)),
      plan_(std::move(plan)),
      rank_(rank),
      batch_(batch),
      held_(static_cast<size_t>(world_size)) {
  CHECK(batch % virtual_workers == 0);
  for (int r = 0; r < world_size; ++r) {
    range_.push_back(VirtualWorkerRange(virtual_workers, world_size, r));
    assigned_.resize(static_cast<size_t>(range_.back().end), r);
  }
  for (const TableSpec& table : tables_) {
    const int first = num_bags();
    bags_.push_back({first, first + static_cast<int>(table.bags())});
    of_column_.emplace_back(static_cast<size_t>(table.column_blocks));
    of_block_.emplace_back(static_cast<size_t>(table.row_blocks));
  }
  for (size_t s = 0; s < plan_.shards.size(); ++s) {
    const Shard& shard = plan_.shards[s];
    rows_.emplace_back(tables_[shard.table], shard.row_blocks);
    of_column_[shard.table][static_cast<size_t>(shard.column_block)].push_back(s);
    if (shard.column_block == 0)
      for (int block = shard.row_blocks.begin; block < shard.row_blocks.end; ++block)
        of_block_[shard.table][static_cast<size_t>(block)] = s;
    for (int r = 0; r < world_size; ++r)
      if (shard.on(r)) held_[static_cast<size_t>(r)].push_back(s);
  }
}

}  // namespace renzan
