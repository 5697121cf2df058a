#pragma once

// The ways to place one table that the planner tries.

#include <span>
#include <vector>

#include "renzan/plan/cost_model.h"
#include "renzan/plan/planner.h"
#include "renzan/plan/sharding_plan.h"

namespace renzan {

// The table's shards under one sharding. `order`: all workers, in the order in which to use them.
// kColumnWise puts the column blocks on the first workers, kTableRowWise the row blocks on the
// first worker's host.
std::vector<Shard> PlaceTable(size_t table, const TableSpec& spec, Sharding sharding,
                              const Topology& topology, std::span<const int> order);

// The shardings to choose from: those that the table's blocks and the topology allow, table-wise
// first. Only small tables are replicated, because nobody expects a plan to multiply memory.
std::vector<Sharding> AllowedShardings(const TableSpec& spec, const Topology& topology);

}  // namespace renzan
