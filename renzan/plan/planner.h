#pragma once

// Chooses a sharding plan. A pure function: every worker computes the same plan.

#include <span>
#include <string>
#include <vector>

#include "renzan/plan/sharding_plan.h"

namespace renzan {

// The field's ways to spread a table.
enum class Sharding {
  kAuto,
  kTableWise,     // the whole table on one worker
  kRowWise,       // its row blocks over all workers
  kColumnWise,    // its column blocks, each on one worker
  kTableRowWise,  // its row blocks over the workers of one host
  kReplicated,    // a copy on every worker (data-parallel)
};

// "auto", "table_wise", ... in the order of Sharding.
const std::vector<std::string>& ShardingNames();

struct Topology {
  std::vector<IndexRange> hosts;  // the ranks of each, in order

  int workers() const { return hosts.back().end; }
  static Topology OneHost(int workers) { return {.hosts = {{0, workers}}}; }
};

// `choices` [tables]. Throws kConfig, which names the table and begins with `where`, for a choice
// that the table's blocks do not allow.
ShardingPlan MakePlan(std::span<const TableSpec> tables, const Topology& topology,
                      std::span<const Sharding> choices, const std::string& where);

}  // namespace renzan
