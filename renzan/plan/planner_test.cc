#include "renzan/plan/planner.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

std::vector<Sharding> All(const std::vector<TableSpec>& tables, Sharding choice) {
  return std::vector<Sharding>(tables.size(), choice);
}

// The rank of each table, of a plan without other shardings.
std::vector<int> Owners(const std::vector<TableSpec>& tables, int workers) {
  const ShardingPlan plan = MakePlan(tables, Topology::OneHost(workers),
                                     All(tables, Sharding::kTableWise), "test");
  std::vector<int> owners;
  for (const Shard& shard : plan.shards) owners.push_back(shard.rank);
  return owners;
}

TEST(MakePlan, BalancesTrafficThenBytes) {
  std::vector<TableSpec> tables;
  for (int64_t rows : {1000, 10, 900, 20})
    tables.push_back({.num_embeddings = rows, .embedding_dim = 16});
  // Largest first, alternating, the lighter worker first once the traffic is even.
  EXPECT_EQ(Owners(tables, 2), (std::vector<int>{0, 0, 1, 1}));
  tables.push_back({.num_embeddings = 5, .embedding_dim = 16, .pooling_factor = 4});
  EXPECT_EQ(Owners(tables, 2), (std::vector<int>{1, 1, 1, 1, 0}));
}

TEST(MakePlan, MoreWorkersThanTables) {
  const std::vector<TableSpec> tables(2, {.num_embeddings = 8, .embedding_dim = 4});
  EXPECT_EQ(Owners(tables, 4), (std::vector<int>{0, 1}));
}

TEST(MakePlan, SplitsByRowsWhatIsTooMuchForOneWorker) {
  const std::vector<TableSpec> tables = {
      {.name = "small", .num_embeddings = 100, .embedding_dim = 8},
      {.name = "large", .num_embeddings = 10000, .embedding_dim = 8, .row_blocks = 8}};
  const auto plan = [&](int workers) {
    return MakePlan(tables, Topology::OneHost(workers), All(tables, Sharding::kAuto), "test")
        .shards;
  };
  EXPECT_EQ(plan(1), (std::vector<Shard>{{0, {0, 1}, 0, 0}, {1, {0, 8}, 0, 0}}));
  EXPECT_EQ(plan(2),
            (std::vector<Shard>{{0, {0, 1}, 0, 0}, {1, {0, 4}, 0, 0}, {1, {4, 8}, 0, 1}}));
}

TEST(MakePlan, DoesWhatIsPinned) {
  const std::vector<TableSpec> tables(
      5, {.name = "t", .num_embeddings = 64, .embedding_dim = 8, .row_blocks = 4,
          .column_blocks = 2});
  const std::vector<Sharding> choices = {Sharding::kTableWise, Sharding::kRowWise,
                                         Sharding::kColumnWise, Sharding::kTableRowWise,
                                         Sharding::kReplicated};
  const Topology topology{.hosts = {{0, 2}, {2, 4}}};
  const ShardingPlan plan = MakePlan(tables, topology, choices, "test");
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
      MakePlan(tables, Topology::OneHost(2), All(tables, choice), "sharding");
      FAIL() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace renzan
