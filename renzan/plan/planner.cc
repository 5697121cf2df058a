#include "renzan/plan/planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "renzan/base/error.h"
#include "renzan/plan/placements.h"

namespace renzan {
namespace {

// The rest is kept for what the estimates miss.
constexpr double kUsableMemory = 0.9;

// How good a plan is: first whether it fits, then how long a step takes, then the total time,
// including time that does not lengthen the step.
struct Score {
  double overflow;  // sum of squares, so that what does not fit is spread evenly
  double seconds, sum;
  bool operator<(const Score& other) const {
    return std::tie(overflow, seconds, sum) < std::tie(other.overflow, other.seconds, other.sum);
  }
};

using Placement = std::vector<Shard>;

class Search {
 public:
  Search(std::span<const TableSpec> tables, const RunCosts& run, const Topology& topology)
      : tables_(tables),
        run_(run),
        topology_(topology),
        workers_(static_cast<size_t>(topology.workers())),
        placements_(tables.size()) {}

  const Placement& placement(size_t table) const { return placements_[table]; }

  void Put(size_t table, Placement placement) {
    Account(placements_[table], -1);
    placements_[table] = std::move(placement);
    Account(placements_[table], 1);
  }

  Score ScoreNow() const {
    const StepEstimate step = EstimateStep(workers_, run_, topology_);
    Score score{0, step.total(), 0};
    for (const WorkerCost& worker : workers_) {
      score.sum += worker.table_seconds();
      if (topology_.rates.memory_bytes <= 0) continue;
      const double over = worker.memory_bytes() + run_.fixed_memory_bytes -
                          kUsableMemory * topology_.rates.memory_bytes;
      if (over > 0) score.overflow += over * over;
    }
    return score;
  }

  // Puts the table where it is best, using one of the given shardings.
  void PutBest(size_t table, std::span<const Sharding> shardings) {
    const Placement before = placements_[table];
    Put(table, {});
    const std::vector<std::vector<int>> orders = {ByTime(), ByMemory()};
    Placement best = before;
    bool found = false;
    Score best_score{};
    const auto consider = [&](Placement candidate) {
      Put(table, std::move(candidate));
      const Score score = ScoreNow();
      if (found && !(score < best_score)) return;
      found = true;
      best_score = score;
      best = placements_[table];
    };
    if (!before.empty()) consider(before);
    for (const Sharding sharding : shardings)
      for (const std::vector<int>& order : orders)
        consider(PlaceTable(table, tables_[table], sharding, topology_, order));
    Put(table, best);
  }

  // How much time a table takes in total. Greedy placement takes the largest first.
  double Weight(size_t table) {
    double seconds = 0;
    for (const Shard& shard :
         PlaceTable(table, tables_[table], Sharding::kTableWise, topology_, ByTime())) {
      const ShardCost& cost = CostOf(shard);
      seconds += cost.lookup_seconds + cost.update_seconds + cost.catch_up_seconds;
      if (workers_.size() > 1)
        seconds += (cost.pooled_bytes + cost.gradient_bytes) / topology_.rates.intra_host_bytes;
    }
    return seconds;
  }

  ShardingPlan Plan() const {
    ShardingPlan plan;
    for (const Placement& placement : placements_)
      plan.shards.insert(plan.shards.end(), placement.begin(), placement.end());
    std::sort(plan.shards.begin(), plan.shards.end(), [](const Shard& a, const Shard& b) {
      return std::tie(a.table, a.column_block, a.row_blocks.begin) <
             std::tie(b.table, b.column_block, b.row_blocks.begin);
    });
    return plan;
  }

 private:
  const ShardCost& CostOf(const Shard& shard) {
    const auto key = std::make_tuple(shard.table, shard.row_blocks.begin, shard.row_blocks.end,
                                     shard.rank == kEveryRank);
    const auto known = costs_.find(key);
    if (known != costs_.end()) return known->second;
    return costs_[key] = CostOfShard(shard, tables_[shard.table], run_, topology_);
  }

  void Account(const Placement& placement, double sign) {
    for (const Shard& shard : placement) {
      const ShardCost& cost = CostOf(shard);
      if (shard.rank != kEveryRank) {
        workers_[static_cast<size_t>(shard.rank)].Add(shard, cost, sign);
      } else {
        for (WorkerCost& worker : workers_) worker.Add(shard, cost, sign);
      }
    }
  }

  template <class Key>
  std::vector<int> Ordered(const Key& key) const {
    std::vector<int> order(workers_.size());
    std::iota(order.begin(), order.end(), 0);
    // Sums of the same shards in another order differ in their last bits, which must not decide.
    const auto rounded = [&](int rank) {
      return static_cast<float>(key(workers_[static_cast<size_t>(rank)]));
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return rounded(a) < rounded(b); });
    return order;
  }
  std::vector<int> ByTime() const {
    return Ordered([](const WorkerCost& w) { return w.table_seconds(); });
  }
  std::vector<int> ByMemory() const {
    return Ordered([](const WorkerCost& w) { return w.memory_bytes(); });
  }

  std::span<const TableSpec> tables_;
  RunCosts run_;
  Topology topology_;
  std::vector<WorkerCost> workers_;
  std::vector<Placement> placements_;
  std::map<std::tuple<size_t, int, int, bool>, ShardCost> costs_;
};

// Largest differencing method (Karmarkar and Karp 1982) for several parts: assigns items to workers
// so that the sums of their weights are even. Repeatedly joins the two partitions with the largest
// spread, the largest sum of one with the smallest of the other. Returns each item's worker.
std::vector<int> Difference(const std::vector<double>& weights, int workers) {
  struct Partition {
    std::vector<double> sums;  // ascending
    std::vector<std::vector<size_t>> items;
    size_t first;  // for ties
    double Spread() const { return sums.back() - sums.front(); }
  };
  const auto less = [](const Partition& a, const Partition& b) {
    return std::make_tuple(a.Spread(), b.first) < std::make_tuple(b.Spread(), a.first);
  };
  std::priority_queue<Partition, std::vector<Partition>, decltype(less)> queue(less);
  const size_t n = static_cast<size_t>(workers);
  for (size_t i = 0; i < weights.size(); ++i) {
    Partition one{std::vector<double>(n), std::vector<std::vector<size_t>>(n), i};
    one.sums.back() = weights[i];
    one.items.back() = {i};
    queue.push(std::move(one));
  }
  while (queue.size() > 1) {
    const Partition a = queue.top();
    queue.pop();
    const Partition b = queue.top();
    queue.pop();
    std::vector<std::pair<double, std::vector<size_t>>> joined;
    for (size_t w = 0; w < n; ++w) {
      std::vector<size_t> items = a.items[w];
      const std::vector<size_t>& others = b.items[n - 1 - w];
      items.insert(items.end(), others.begin(), others.end());
      joined.emplace_back(a.sums[w] + b.sums[n - 1 - w], std::move(items));
    }
    std::stable_sort(joined.begin(), joined.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    Partition both{{}, {}, std::min(a.first, b.first)};
    for (auto& [sum, items] : joined) {
      both.sums.push_back(sum);
      both.items.push_back(std::move(items));
    }
    queue.push(std::move(both));
  }
  std::vector<int> worker_of(weights.size());
  if (!queue.empty())
    for (size_t w = 0; w < n; ++w)
      for (const size_t item : queue.top().items[w]) worker_of[item] = static_cast<int>(w);
  return worker_of;
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

// Moves single tables as long as that improves the plan.
void Improve(Search* search, std::span<const size_t> order,
             const std::vector<std::vector<Sharding>>& allowed) {
  constexpr int kMostPasses = 8;
  constexpr double kWorthwhile = 1e-3;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const Score before = search->ScoreNow();
    for (const size_t table : order) search->PutBest(table, allowed[table]);
    const Score after = search->ScoreNow();
    if (after.overflow >= before.overflow * (1 - kWorthwhile) &&
        after.seconds > before.seconds * (1 - kWorthwhile))
      return;
  }
}

}  // namespace

const std::vector<std::string>& ShardingNames() {
  static const std::vector<std::string> names = {"auto",        "table_wise",     "row_wise",
                                                 "column_wise", "table_row_wise", "replicated"};
  return names;
}

ShardingPlan MakePlan(std::span<const TableSpec> tables, const RunCosts& run,
                      const Topology& topology, std::span<const Sharding> choices,
                      const std::string& where) {
  CHECK(!topology.hosts.empty() && topology.workers() >= 1);
  CHECK(choices.size() == tables.size());
  std::vector<std::vector<Sharding>> allowed;
  for (size_t t = 0; t < tables.size(); ++t) {
    // With one worker or one row there is nothing to split: the table is whole under any sharding.
    const bool indivisible = topology.workers() == 1 || tables[t].num_embeddings == 1;
    const Sharding choice =
        indivisible && choices[t] != Sharding::kAuto ? Sharding::kTableWise : choices[t];
    CheckChoice(choice, tables[t], where);
    allowed.push_back(choice == Sharding::kAuto ? AllowedShardings(tables[t], topology)
                                                : std::vector<Sharding>{choice});
  }
  Search greedy(tables, run, topology);
  std::vector<double> weights;
  for (size_t t = 0; t < tables.size(); ++t) weights.push_back(greedy.Weight(t));
  std::vector<size_t> order(tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  for (const size_t table : order) greedy.PutBest(table, allowed[table]);

  // The same plan, but tables that greedy placement left whole are distributed by differencing.
  Search differenced = greedy;
  std::vector<size_t> whole;
  std::vector<double> weights_of_whole;
  for (const size_t table : order) {
    const Placement& placement = greedy.placement(table);
    const bool one_worker =
        std::all_of(placement.begin(), placement.end(),
                    [&](const Shard& shard) { return shard.rank == placement[0].rank; });
    if (!one_worker || placement[0].rank == kEveryRank || allowed[table][0] != Sharding::kTableWise)
      continue;
    whole.push_back(table);
    weights_of_whole.push_back(weights[table]);
  }
  const std::vector<int> worker_of = Difference(weights_of_whole, topology.workers());
  for (size_t i = 0; i < whole.size(); ++i)
    differenced.Put(whole[i], PlaceTable(whole[i], tables[whole[i]], Sharding::kTableWise, topology,
                                         std::vector<int>{worker_of[i]}));
  Search& best = differenced.ScoreNow() < greedy.ScoreNow() ? differenced : greedy;
  Improve(&best, order, allowed);
  ShardingPlan plan = best.Plan();
  CheckPlan(plan, tables, topology.workers(), where);
  return plan;
}

Sharding ShardingOf(const ShardingPlan& plan, size_t table, const Topology& topology) {
  Placement shards;
  std::vector<int> ranks;
  for (const Shard& shard : plan.shards) {
    if (shard.table != table) continue;
    shards.push_back(shard);
    if (std::find(ranks.begin(), ranks.end(), shard.rank) == ranks.end())
      ranks.push_back(shard.rank);
  }
  if (ranks == std::vector<int>{kEveryRank}) return Sharding::kReplicated;
  if (ranks.size() == 1) return Sharding::kTableWise;
  if (std::count(ranks.begin(), ranks.end(), kEveryRank) > 0) return Sharding::kAuto;
  const bool whole_columns = std::all_of(shards.begin(), shards.end(), [&](const Shard& s) {
    return std::all_of(shards.begin(), shards.end(), [&](const Shard& other) {
      return other.column_block != s.column_block || other.rank == s.rank;
    });
  });
  if (whole_columns) return Sharding::kColumnWise;
  const auto on_one_host = [&](const IndexRange& host) {
    return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return host.contains(rank); });
  };
  const bool one_host = topology.hosts.size() > 1 &&
                        std::any_of(topology.hosts.begin(), topology.hosts.end(), on_one_host);
  return one_host ? Sharding::kTableRowWise : Sharding::kRowWise;
}

}  // namespace renzan
