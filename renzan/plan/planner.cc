#include "renzan/plan/planner.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "renzan/base/error.h"

namespace renzan {
namespace {

double Traffic(const TableSpec& table) {
  return table.pooling_factor * static_cast<double>(table.embedding_dim);
}

int64_t Elements(const TableSpec& table) { return table.num_embeddings * table.embedding_dim; }

struct Load {
  double traffic = 0;
  int64_t elements = 0;
};

bool Less(const Load& a, const Load& b) {
  return std::tie(a.traffic, a.elements) < std::tie(b.traffic, b.elements);
}

class Placer {
 public:
  Placer(std::span<const TableSpec> tables, const Topology& topology)
      : tables_(tables), topology_(topology), loads_(static_cast<size_t>(topology.workers())) {}

  void Place(size_t table, Sharding how) {
    const TableSpec& spec = tables_[table];
    switch (how) {
      case Sharding::kAuto:
      case Sharding::kTableWise: {
        const int rank = LeastLoaded({0, topology_.workers()});
        for (int column = 0; column < spec.column_blocks; ++column)
          Add({table, {0, spec.row_blocks}, column, rank});
        break;
      }
      case Sharding::kColumnWise:
        for (int column = 0; column < spec.column_blocks; ++column)
          Add({table, {0, spec.row_blocks}, column, LeastLoaded({0, topology_.workers()})});
        break;
      case Sharding::kRowWise:
        OverRanks(table, {0, topology_.workers()});
        break;
      case Sharding::kTableRowWise:
        OverRanks(table, HostOfLeastLoad());
        break;
      case Sharding::kReplicated:
        for (int column = 0; column < spec.column_blocks; ++column)
          Add({table, {0, spec.row_blocks}, column, kEveryRank});
        break;
    }
  }

  ShardingPlan TakePlan() {
    std::sort(plan_.shards.begin(), plan_.shards.end(), [](const Shard& a, const Shard& b) {
      return std::tie(a.table, a.column_block, a.row_blocks.begin) <
             std::tie(b.table, b.column_block, b.row_blocks.begin);
    });
    return std::move(plan_);
  }

 private:
  // Its row blocks in even parts, the least loaded worker first where there are fewer.
  void OverRanks(size_t table, IndexRange ranks) {
    const TableSpec& spec = tables_[table];
    std::vector<int> order(static_cast<size_t>(ranks.size()));
    std::iota(order.begin(), order.end(), ranks.begin);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return Less(loads_[static_cast<size_t>(a)], loads_[static_cast<size_t>(b)]);
    });
    const int parts = std::min(ranks.size(), spec.row_blocks);
    for (int part = 0; part < parts; ++part) {
      const IndexRange blocks = {part * spec.row_blocks / parts,
                                 (part + 1) * spec.row_blocks / parts};
      for (const IndexRange range : AlignedRanges(blocks))
        for (int column = 0; column < spec.column_blocks; ++column)
          Add({table, range, column, order[static_cast<size_t>(part)]});
    }
  }

  int LeastLoaded(IndexRange ranks) const {
    const auto begin = loads_.begin() + ranks.begin, end = loads_.begin() + ranks.end;
    return static_cast<int>(std::min_element(begin, end, Less) - loads_.begin());
  }

  IndexRange HostOfLeastLoad() const {
    IndexRange best;
    Load least;
    for (const IndexRange host : topology_.hosts) {
      Load load;
      for (int rank = host.begin; rank < host.end; ++rank) {
        load.traffic += loads_[static_cast<size_t>(rank)].traffic;
        load.elements += loads_[static_cast<size_t>(rank)].elements;
      }
      if (best.size() == 0 || Less(load, least)) {
        best = host;
        least = load;
      }
    }
    return best;
  }

  void Add(const Shard& shard) {
    const TableSpec& spec = tables_[shard.table];
    const double share = static_cast<double>(shard.row_blocks.size()) /
                         static_cast<double>(spec.row_blocks * spec.column_blocks);
    int64_t rows = 0;
    for (int block = shard.row_blocks.begin; block < shard.row_blocks.end; ++block)
      rows += spec.rows_of_block(block);
    for (int rank = 0; rank < topology_.workers(); ++rank) {
      if (!shard.on(rank)) continue;
      loads_[static_cast<size_t>(rank)].traffic += Traffic(spec) * share;
      loads_[static_cast<size_t>(rank)].elements += rows * spec.block_columns();
    }
    plan_.shards.push_back(shard);
  }

  std::span<const TableSpec> tables_;
  Topology topology_;
  std::vector<Load> loads_;
  ShardingPlan plan_;
};

// A table is split by rows if one worker would have more than its share of all tables.
Sharding Choose(const TableSpec& table, int64_t all_elements, int workers) {
  return table.row_blocks > 1 && Elements(table) > all_elements / workers ? Sharding::kRowWise
                                                                          : Sharding::kTableWise;
}

void CheckChoice(Sharding choice, const TableSpec& table, const std::string& where) {
  const bool by_rows = choice == Sharding::kRowWise || choice == Sharding::kTableRowWise;
  if (by_rows && table.row_blocks == 1)
    Fail(ErrorCode::kConfig,
         "{}: table {} has one row block, so it cannot be split by rows: set numerics.row_blocks, "
         "or model.tables.{}.row_blocks, to a power of two (which changes rounding)",
         where, table.name, table.name);
  if (choice == Sharding::kColumnWise && table.column_blocks == 1)
    Fail(ErrorCode::kConfig,
         "{}: table {} has one column block, so it cannot be split by columns: set "
         "numerics.column_blocks, or model.tables.{}.column_blocks, to a divisor of its dimension "
         "{} (which changes rounding)",
         where, table.name, table.name, table.embedding_dim);
}

}  // namespace

const std::vector<std::string>& ShardingNames() {
  static const std::vector<std::string> names = {"auto",        "table_wise",     "row_wise",
                                                 "column_wise", "table_row_wise", "replicated"};
  return names;
}

ShardingPlan MakePlan(std::span<const TableSpec> tables, const Topology& topology,
                      std::span<const Sharding> choices, const std::string& where) {
  CHECK(!topology.hosts.empty() && topology.workers() >= 1);
  CHECK(choices.size() == tables.size());
  int64_t all_elements = 0;
  for (const TableSpec& table : tables) all_elements += Elements(table);
  std::vector<size_t> order(tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_tuple(-Traffic(tables[a]), -Elements(tables[a])) <
           std::make_tuple(-Traffic(tables[b]), -Elements(tables[b]));
  });
  // What is the same for all workers, or nearly so, comes first; then the most traffic.
  const auto sharding_of = [&](size_t table) {
    return choices[table] == Sharding::kAuto
               ? Choose(tables[table], all_elements, topology.workers())
               : choices[table];
  };
  std::stable_partition(order.begin(), order.end(), [&](size_t table) {
    return sharding_of(table) == Sharding::kRowWise || sharding_of(table) == Sharding::kReplicated;
  });
  Placer placer(tables, topology);
  for (const size_t table : order) {
    CheckChoice(choices[table], tables[table], where);
    placer.Place(table, sharding_of(table));
  }
  return placer.TakePlan();
}

}  // namespace renzan
