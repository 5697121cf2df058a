#pragma once

// Random sharding plans, for tests.

#include <cstdint>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/plan/sharding_plan.h"

namespace renzan {

// A random plan: each table is whole, split or replicated, each shard anywhere.
inline ShardingPlan RandomPlan(const std::vector<TableSpec>& tables, int world_size,
                               uint64_t seed) {
  uint64_t draws = 0;
  const auto below = [&](int n) {
    return static_cast<int>(Philox::Draw(seed, draws++)[0] % static_cast<uint32_t>(n));
  };
  ShardingPlan plan;
  for (size_t t = 0; t < tables.size(); ++t) {
    std::vector<IndexRange> rows;
    for (int begin = 0; begin < tables[t].row_blocks;) {
      const std::vector<IndexRange> rest = AlignedRanges({begin, tables[t].row_blocks});
      int size = rest[0].size();
      while (size > 1 && below(2) == 0) size /= 2;
      rows.push_back({begin, begin + size});
      begin += size;
    }
    const bool replicated = below(5) == 0;
    for (int column = 0; column < tables[t].column_blocks; ++column)
      for (const IndexRange range : rows)
        plan.shards.push_back(
            {t, range, column, replicated || below(8) == 0 ? kEveryRank : below(world_size)});
  }
  CheckPlan(plan, tables, world_size, "random plan");
  return plan;
}

}  // namespace renzan
