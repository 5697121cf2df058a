#include "renzan/planning/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::vector<TableSpec> Tables() {
  return {
      {.name = "a", .num_embeddings = 80, .embedding_dim = 4, .row_blocks = 8},
      {.name = "b", .num_embeddings = 80, .embedding_dim = 4, .row_blocks = 4, .column_blocks = 2},
      {.name = "user:id", .num_embeddings = 8, .embedding_dim = 4}};
}

ShardingPlan PlanFrom(const std::string& text, int workers = 3) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "plan.yaml", text);
  return ReadPlan(dir / "plan.yaml", Tables(), workers);
}

constexpr const char* kPlan = R"(workers: 3
tables:
  a: {workers: [0, 0, 0, 1, 1, 1, 1, 2]}
  b: {workers: [0, 0, 1, 1, 2, -1, -1, -1]}
  "user:id": {workers: [-1]}
)";

TEST(PlanFile, HoldsTheWorkerOfEachBlock) {
  const ShardingPlan plan = PlanFrom(kPlan);
  EXPECT_EQ(plan.shards, (std::vector<Shard>{{0, {0, 2}, 0, 0},
                                             {0, {2, 3}, 0, 0},
                                             {0, {3, 4}, 0, 1},
                                             {0, {4, 6}, 0, 1},
                                             {0, {6, 7}, 0, 1},
                                             {0, {7, 8}, 0, 2},
                                             {1, {0, 1}, 0, 0},
                                             {1, {1, 2}, 0, 0},
                                             {1, {2, 4}, 0, 1},
                                             {1, {0, 1}, 1, 2},
                                             {1, {1, 2}, 1, kEveryRank},
                                             {1, {2, 4}, 1, kEveryRank},
                                             {2, {0, 1}, 0, kEveryRank}}));
  EXPECT_EQ(PlanFrom(PrintPlan(plan, Tables(), 3)), plan);
}

TEST(PlanFile, SaysForHowManyWorkersItIs) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "plan.yaml", kPlan);
  EXPECT_EQ(WorkersOfPlan(dir / "plan.yaml"), 3);
  EXPECT_EQ(WorkersOfPlan(dir / "nowhere.yaml"), std::nullopt);
  WriteFileAtomically(dir / "other.yaml", "worker: 3\n");
  EXPECT_THROW(WorkersOfPlan(dir / "other.yaml"), Error);
}

TEST(PlanFile, NamesWhatIsWrong) {
  const auto expect = [](const std::string& from, const std::string& to, const char* text,
                         int workers = 3) {
    std::string plan = kPlan;
    plan.replace(plan.find(from), from.size(), to);
    try {
      PlanFrom(plan, workers);
      ADD_FAILURE() << "accepted; expected " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
      EXPECT_THAT(error.what(), testing::HasSubstr("plan.yaml"));
    }
  };
  expect("workers: 3", "workers: 3", "for 3 workers, not for 2", 2);
  expect("  a:", "  c:", "has no table a");
  expect("  a:", "  c: {workers: [0]}\n  a:", "has a table c");
  expect("1, 1, 2]", "1, 2]", "table a has 7 entries, but it has 8 row blocks and 1 column block");
  expect("[-1]", "[3]", "worker 3: workers are 0 to 2");
  expect("workers: 3", "worker: 3", "did you mean 'workers'?");
  expect("[-1]", "[x]", "user:id");
}

}  // namespace
}  // namespace renzan
