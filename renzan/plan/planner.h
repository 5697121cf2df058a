#pragma once

// Chooses a sharding plan: for each table one of the field's shardings, and workers, so that a step
// of the cost model is short and every worker's memory suffices. A pure function, but of
// floating-point costs, which processors may round differently: one worker plans for all.

#include <span>
#include <string>
#include <vector>

#include "renzan/plan/cost_model.h"
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

// `choices` [tables]. If nothing fits into the workers' memory, the plan that exceeds it least.
// Throws kConfig, which names the table and begins with `where`, for a choice that the table's
// blocks do not allow.
ShardingPlan MakePlan(std::span<const TableSpec> tables, const RunCosts& run,
                      const Topology& topology, std::span<const Sharding> choices,
                      const std::string& where);

// What a plan does with a table; kAuto if it is none of them.
Sharding ShardingOf(const ShardingPlan& plan, size_t table, const Topology& topology);

}  // namespace renzan
