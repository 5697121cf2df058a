#pragma once

// Chooses a sharding plan: for each table a sharding and its workers, so that a step of the cost
// model is short and every worker's memory suffices. A pure function, but its floating-point costs
// may round differently on different processors: one worker plans for all.

#include <span>
#include <string>
#include <vector>

#include "renzan/plan/cost_model.h"
#include "renzan/plan/sharding_plan.h"

namespace renzan {

// The usual ways to distribute a table.
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

// `choices` [tables]. If nothing fits into the workers' memory, returns the plan that exceeds it
// least. Throws kConfig for a choice that the table's blocks do not allow; the message begins with
// `where` and names the table.
ShardingPlan MakePlan(std::span<const TableSpec> tables, const RunCosts& run,
                      const Topology& topology, std::span<const Sharding> choices,
                      const std::string& where);

// Which sharding the plan uses for a table; kAuto if it is none of them.
Sharding ShardingOf(const ShardingPlan& plan, size_t table, const Topology& topology);

}  // namespace renzan
