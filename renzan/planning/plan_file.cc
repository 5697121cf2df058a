#include "renzan/planning/plan_file.h"

#include <map>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

struct PlanOfTable {
  std::vector<int> workers;  // by column block and row block
  void Describe(ConfigFields& fields) { fields.Field("workers", &workers); }
};

struct PlanFile {
  int workers = 0;
  std::map<std::string, PlanOfTable> tables;
  void Describe(ConfigFields& fields) {
    fields.Range("workers", &workers, 1, 1024);
    fields.Map("tables", &tables);
  }
};

PlanFile ParsePlanFile(const std::string& text, const std::string& path) {
  PlanFile file;
  ReadConfigText(text, path, {}, [&](ConfigFields& fields) { file.Describe(fields); });
  return file;
}

// Adds a table's shards: as large as possible, and split by rows alike in all column blocks.
void AddShards(const TableSpec& table, size_t index, const std::vector<int>& workers,
               ShardingPlan* plan) {
  const auto at = [&](int column, int row) {
    return workers[static_cast<size_t>(column * table.row_blocks + row)];
  };
  std::vector<IndexRange> ranges;
  for (int begin = 0, end; begin < table.row_blocks; begin = end) {
    const auto same = [&](int row) {
      for (int column = 0; column < table.column_blocks; ++column)
        if (at(column, row) != at(column, begin)) return false;
      return true;
    };
    for (end = begin + 1; end < table.row_blocks && same(end);) ++end;
    for (const IndexRange range : AlignedRanges(table, {begin, end})) ranges.push_back(range);
  }
  for (int column = 0; column < table.column_blocks; ++column)
    for (const IndexRange range : ranges)
      plan->shards.push_back({index, range, column, at(column, range.begin)});
}

}  // namespace

std::optional<int> WorkersOfPlan(const std::string& path) {
  if (!FileExists(path)) return std::nullopt;
  return ParsePlanFile(ReadFile(path), path).workers;
}

ShardingPlan ReadPlan(const std::string& path, std::span<const TableSpec> tables, int workers) {
  return ParsePlan(ReadFile(path), path, tables, workers);
}

ShardingPlan ParsePlan(const std::string& text, const std::string& path,
                       std::span<const TableSpec> tables, int workers) {
  PlanFile file = ParsePlanFile(text, path);
  if (file.workers != workers)
    Fail(ErrorCode::kConfig,
         "{} is a plan for {}, not for {}: make another with `renzan plan --workers "
         "{}`, or set sharding.plan to ''",
         path, Counted(file.workers, "worker"), workers, workers);
  ShardingPlan plan;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& table = tables[t];
    const auto found = file.tables.find(table.name);
    if (found == file.tables.end())
      Fail(ErrorCode::kConfig, "{} has no table {}: it is a plan for another model", path,
           table.name);
    const std::vector<int>& ranks = found->second.workers;
    const int blocks = table.row_blocks * table.column_blocks;
    if (std::ssize(ranks) != blocks)
      Fail(ErrorCode::kConfig,
           "{}: table {} has {}, but it has {} and {}: one entry "
           "for each",
           path, table.name, Counted(ranks.size(), "entry", "entries"),
           Counted(table.row_blocks, "row block"), Counted(table.column_blocks, "column block"));
    for (const int rank : ranks)
      if (rank != kEveryRank && (rank < 0 || rank >= workers))
        Fail(ErrorCode::kConfig,
             "{}: table {} has a block on worker {}: workers are 0 to {}, and -1 for all", path,
             table.name, rank, workers - 1);
    AddShards(table, t, ranks, &plan);
    file.tables.erase(found);
  }
  if (!file.tables.empty())
    Fail(ErrorCode::kConfig,
         "{} has a table {}, which the model does not have: it is a plan for another model", path,
         file.tables.begin()->first);
  CheckPlan(plan, tables, workers, path);
  return plan;
}

std::string PrintPlan(const ShardingPlan& plan, std::span<const TableSpec> tables, int workers) {
  PlanFile file{.workers = workers, .tables = {}};
  for (const Shard& shard : plan.shards) {
    const TableSpec& table = tables[shard.table];
    std::vector<int>& ranks = file.tables[table.name].workers;
    ranks.resize(static_cast<size_t>(table.row_blocks * table.column_blocks));
    for (int row = shard.row_blocks.begin; row < shard.row_blocks.end; ++row)
      ranks[static_cast<size_t>(shard.column_block * table.row_blocks + row)] = shard.rank;
  }
  return PrintConfig([&](ConfigFields& fields) { file.Describe(fields); });
}

}  // namespace renzan
