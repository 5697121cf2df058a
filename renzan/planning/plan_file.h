#pragma once

// Sharding plans as files: for every table, the worker of each of its blocks.
//
//   workers: 2
//   tables:
//     C1:
//       workers: [0, 0, 1, 1]  # of 4 row blocks
//     C2:
//       workers: [-1]          # a copy on every worker
//
// With several column blocks, all row blocks of the first column block come first, then those of
// the second, and so on.

#include <optional>
#include <span>
#include <string>

#include "renzan/plan/sharding_plan.h"

namespace renzan {

// How many workers the plan file is for; nothing if there is no such file. Throws kConfig if it is
// not a plan.
std::optional<int> WorkersOfPlan(const std::string& path);

// Throws kNoInput or kConfig unless the file holds a plan for these tables and this many workers.
ShardingPlan ReadPlan(const std::string& path, std::span<const TableSpec> tables, int workers);

// The same for a plan's text; messages call it `name`.
ShardingPlan ParsePlan(const std::string& text, const std::string& name,
                       std::span<const TableSpec> tables, int workers);

// The text of such a file.
std::string PrintPlan(const ShardingPlan& plan, std::span<const TableSpec> tables, int workers);

}  // namespace renzan
