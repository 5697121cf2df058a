#include "renzan/plan/planner.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

struct Score {
  double most_update = 0, all_updates = 0, most_memory = 0, step = 0;
};

std::vector<Sharding> All(const std::vector<TableSpec>& tables, Sharding choice) {
  return std::vector<Sharding>(tables.size(), choice);
}

// A step that embedding tables dominate.
constexpr RunCosts kRun = {
    .batch = 8192, .virtual_workers = 8, .flops_per_sample = 1000, .parameters = 1000};

Score ScoreOf(const std::vector<TableSpec>& tables, const ShardingPlan& plan,
              const Topology& topology) {
  const std::vector<WorkerCost> workers = CostsOfPlan(plan, tables, kRun, topology);
  Score score;
  for (const WorkerCost& worker : workers) {
    score.most_update = std::max(score.most_update, worker.update_seconds);
    score.all_updates += worker.update_seconds;
    score.most_memory = std::max(score.most_memory, worker.memory_bytes());
  }
  score.step = EstimateStep(workers, kRun, topology).total();
  return score;
}

TEST(MakePlan, BalancesTables) {
  std::vector<TableSpec> tables;
  for (int i = 0; i < 40; ++i)
    tables.push_back({.name = fmt::format("t{}", i),
                      .num_embeddings = 1000 + (i * 7919) % 90000,
                      .embedding_dim = 64,
                      .multi_hot = i % 3 == 0,
                      .pooling_factor = i % 3 == 0 ? 5.0 + i % 7 : 1.0});
  for (const int workers : {2, 3, 8}) {
    const Topology topology = Topology::OneHost(workers);
    const ShardingPlan plan =
        MakePlan(tables, kRun, topology, All(tables, Sharding::kTableWise), "test");
    const Score score = ScoreOf(tables, plan, topology);
    EXPECT_LT(score.most_update, 1.15 * score.all_updates / workers);
  }
}

TEST(MakePlan, MoreWorkersThanTables) {
  const std::vector<TableSpec> tables(2, {.num_embeddings = 800, .embedding_dim = 64});
  const ShardingPlan plan =
      MakePlan(tables, kRun, Topology::OneHost(4), All(tables, Sharding::kTableWise), "test");
  EXPECT_NE(plan.shards[0].rank, plan.shards[1].rank);
}

TEST(MakePlan, SplitsWhatHasMoreRowsThanAShardMayHave) {
  std::vector<TableSpec> tables = {{.name = "wide",
                                    .num_embeddings = 3'000'000'000,
                                    .embedding_dim = 4,
                                    .row_blocks = 8,
                                    .column_blocks = 2}};
  for (const int workers : {1, 3}) {
    const Topology topology = Topology::OneHost(workers);
    for (const Sharding sharding : {Sharding::kAuto, Sharding::kTableWise, Sharding::kColumnWise,
                                    Sharding::kRowWise, Sharding::kReplicated}) {
      const ShardingPlan plan = MakePlan(tables, kRun, topology, All(tables, sharding), "test");
      EXPECT_GE(plan.shards.size(), 4u);
      if (workers > 1 && sharding != Sharding::kAuto) {
        EXPECT_EQ(ShardingOf(plan, 0, topology), sharding);
      }
    }
  }
  tables[0].row_blocks = 1;
  try {
    MakePlan(tables, kRun, Topology::OneHost(2), All(tables, Sharding::kAuto), "test");
    ADD_FAILURE() << "a shard of 3 billion rows";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "test: table wide, column block 0: row blocks [0, 1) have 3000000000 rows, but at "
                 "most 2^31 - 1 can be in one shard: raise numerics.row_blocks, or "
                 "model.tables.wide.row_blocks (which changes rounding)");
  }
}

TEST(MakePlan, SplitsByRowsWhatIsTooMuchForOneWorker) {
  const std::vector<TableSpec> tables = {
      {.name = "small", .num_embeddings = 100, .embedding_dim = 64},
      {.name = "large",
       .num_embeddings = 10'000'000,
       .embedding_dim = 64,
       .multi_hot = true,
       .pooling_factor = 50,
       .row_blocks = 8}};
  const auto plan = [&](int workers) {
    return MakePlan(tables, kRun, Topology::OneHost(workers), All(tables, Sharding::kAuto), "test");
  };
  EXPECT_EQ(plan(1).shards, (std::vector<Shard>{{0, {0, 1}, 0, 0}, {1, {0, 8}, 0, 0}}));
  EXPECT_EQ(ShardingOf(plan(2), 1, Topology::OneHost(2)), Sharding::kRowWise);
}

// Three tables of 2.6 GB on two workers that can use 4.1 GB each: one has to be split, which time
// alone would not require.
TEST(MakePlan, FitsIntoTheMemory) {
  const std::vector<TableSpec> tables(3, {.name = "t",
                                          .num_embeddings = 10'000'000,
                                          .embedding_dim = 64,
                                          .pooling_factor = 0.01,
                                          .row_blocks = 8});
  Topology topology = Topology::OneHost(2);
  topology.rates.memory_bytes = 4.6e9;
  const ShardingPlan plan = MakePlan(tables, kRun, topology, All(tables, Sharding::kAuto), "test");
  EXPECT_LT(ScoreOf(tables, plan, topology).most_memory, 0.9 * 4.6e9);
}

TEST(MakePlan, DoesWhatIsPinned) {
  const std::vector<TableSpec> tables(
      5,
      {.name = "t", .num_embeddings = 64, .embedding_dim = 8, .row_blocks = 4, .column_blocks = 2});
  const std::vector<Sharding> choices = {Sharding::kTableWise, Sharding::kRowWise,
                                         Sharding::kColumnWise, Sharding::kTableRowWise,
                                         Sharding::kReplicated};
  const Topology topology{.hosts = {{0, 2}, {2, 4}}};
  const ShardingPlan plan = MakePlan(tables, kRun, topology, choices, "test");
  CheckPlan(plan, tables, 4, "test");
  std::vector<std::vector<Shard>> of_table(5);
  for (const Shard& shard : plan.shards) of_table[shard.table].push_back(shard);
  ASSERT_EQ(of_table[0].size(), 2u);  // its column blocks are together
  EXPECT_EQ(of_table[0][0].rank, of_table[0][1].rank);
  std::vector<int> blocks_of_rank(4);
  for (const Shard& shard : of_table[1])
    blocks_of_rank[static_cast<size_t>(shard.rank)] += shard.row_blocks.size();
  EXPECT_EQ(blocks_of_rank, std::vector<int>(4, 2));
  ASSERT_EQ(of_table[2].size(), 2u);
  EXPECT_NE(of_table[2][0].rank, of_table[2][1].rank);
  ASSERT_EQ(of_table[3].size(), 4u);
  for (const Shard& shard : of_table[3])
    EXPECT_EQ(shard.rank / 2, of_table[3][0].rank / 2) << "not on one host";
  for (const Shard& shard : of_table[4]) EXPECT_EQ(shard.rank, kEveryRank);
}

TEST(MakePlan, SaysWhyATableCannotBeSplit) {
  const std::vector<TableSpec> tables = {{.name = "C3", .num_embeddings = 64, .embedding_dim = 8}};
  for (const auto& [choice, key] : {std::pair{Sharding::kRowWise, "model.tables.C3.row_blocks"},
                                    {Sharding::kTableRowWise, "model.tables.C3.row_blocks"},
                                    {Sharding::kColumnWise, "model.tables.C3.column_blocks"}}) {
    try {
      MakePlan(tables, kRun, Topology::OneHost(2), All(tables, choice), "sharding");
      FAIL() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace renzan
