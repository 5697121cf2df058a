#include "renzan/plan/sharding_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

TEST(AlignedRanges, CoverWithTheLargestSubtrees) {
  using Ranges = std::vector<IndexRange>;
  EXPECT_EQ(AlignedRanges({0, 8}), (Ranges{{0, 8}}));
  EXPECT_EQ(AlignedRanges({0, 3}), (Ranges{{0, 2}, {2, 3}}));
  EXPECT_EQ(AlignedRanges({3, 8}), (Ranges{{3, 4}, {4, 8}}));
  EXPECT_EQ(AlignedRanges({1, 7}), (Ranges{{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(AlignedRanges({5, 5}), Ranges());
}

TEST(AlignedRanges, HaveAtMostSoManyRows) {
  using Ranges = std::vector<IndexRange>;
  const TableSpec table = {.num_embeddings = 83, .embedding_dim = 4, .row_blocks = 8};
  EXPECT_EQ(AlignedRanges(table, {0, 8}), (Ranges{{0, 8}}));
  EXPECT_EQ(AlignedRanges(table, {0, 8}, 83), (Ranges{{0, 8}}));
  EXPECT_EQ(AlignedRanges(table, {0, 8}, 43), (Ranges{{0, 4}, {4, 8}}));
  EXPECT_EQ(AlignedRanges(table, {0, 8}, 42), (Ranges{{0, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(AlignedRanges(table, {0, 3}, 11), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(AlignedRanges(table, {0, 3}, 1), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
}

std::vector<TableSpec> Tables() {
  return {
      {.name = "a", .num_embeddings = 20, .embedding_dim = 4, .row_blocks = 4},
      {.name = "b", .num_embeddings = 20, .embedding_dim = 4, .row_blocks = 2, .column_blocks = 2}};
}

ShardingPlan GoodPlan() {
  return {{{0, {0, 2}, 0, 1},
           {0, {2, 3}, 0, 0},
           {0, {3, 4}, 0, 1},
           {1, {0, 1}, 0, 0},
           {1, {1, 2}, 0, kEveryRank},
           {1, {0, 1}, 1, 1},
           {1, {1, 2}, 1, 1}}};
}

TEST(CheckPlan, AcceptsAMixture) { CheckPlan(GoodPlan(), Tables(), 2, "plan"); }

TEST(CheckPlan, NamesWhatIsWrong) {
  const auto expect = [](const ShardingPlan& plan, const char* text) {
    try {
      CheckPlan(plan, Tables(), 2, "p.json");
      ADD_FAILURE() << "accepted; expected " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).starts_with("p.json: table ")) << error.what();
    }
  };
  ShardingPlan plan = GoodPlan();
  plan.shards[2].rank = 2;
  expect(plan, "on worker 2, but the plan is for 2 workers");
  plan = GoodPlan();
  plan.shards.erase(plan.shards.begin() + 1);
  expect(plan, "row block 2 is in no shard");
  plan = GoodPlan();
  plan.shards[1].row_blocks = {1, 2};
  expect(plan, "row block 1 is in two shards");
  plan = GoodPlan();
  plan.shards[0].row_blocks = {0, 3};
  expect(plan, "begins at a multiple");
  plan = GoodPlan();
  plan.shards[2].row_blocks = {4, 5};
  expect(plan, "the table has 4 row blocks");
  plan = GoodPlan();
  plan.shards.resize(5);
  expect(plan, "column block 1: row block 0 is in no shard");
  plan = GoodPlan();
  plan.shards[3].row_blocks = {0, 2};
  plan.shards.erase(plan.shards.begin() + 4);
  expect(plan, "split them alike");
  plan = GoodPlan();
  plan.shards.push_back({1, {0, 2}, 2, 0});
  expect(plan, "shard of column block 2");
}

}  // namespace
}  // namespace renzan
