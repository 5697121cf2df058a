#include "renzan/planning/memory_estimate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/planning/make_plan.h"

namespace renzan {
namespace {

// Two tables that are much larger than everything else; 1 GiB of float32 each.
DatasetSchema SchemaOfTwoLargeTables() {
  DatasetSchema schema{.label = "label"};
  for (const char* name : {"a", "b"}) schema.categorical.push_back({name, int64_t{1} << 24});
  return schema;
}

MemoryEstimate Of(const TrainConfig& config, int workers = 1) {
  const RunSpec spec = MakeRunSpec(config, SchemaOfTwoLargeTables(), std::vector<double>{1, 1});
  return EstimateMemory(spec, PlanOf(spec, Topology::OneHost(workers), 2), workers, 2);
}

TEST(MemoryEstimate, TablesAreRowsStatesAndTwoBitsOfARow) {
  TrainConfig config;
  config.model.embedding_dim = 16;
  constexpr int64_t kRows = int64_t{2} << 24;
  EXPECT_EQ(Of(config).tables, kRows * 64 + kRows / 4);
  config.optimizer.sparse.type = "rowwise_adagrad";
  EXPECT_EQ(Of(config).tables, kRows * 68 + kRows / 4);
  config.optimizer.sparse.type = "adagrad";
  EXPECT_EQ(Of(config).tables, kRows * 128 + kRows / 4);
  config.numerics.embedding_precision = "bf16";
  EXPECT_EQ(Of(config).tables, kRows * 96 + kRows / 4);
  config.optimizer.sparse.type = "adam";
  EXPECT_EQ(Of(config).tables, kRows * 160 + kRows / 4);
  // Where all rows move, how many steps each has taken, and what the last steps were.
  const int64_t without = Of(config).tables;
  config.optimizer.sparse.rows = "all";
  EXPECT_GE(Of(config).tables, without + kRows * 4);
  EXPECT_LT(Of(config).tables, without + kRows * 4 + (1 << 20));
}

TEST(MemoryEstimate, IsThatOfTheWorkerThatNeedsMost) {
  TrainConfig config;
  config.sharding.default_sharding = "table_wise";
  const MemoryEstimate one = Of(config), two = Of(config, 2), three = Of(config, 3);
  EXPECT_EQ(two.tables, one.tables / 2);
  EXPECT_EQ(three.tables, two.tables);  // tables are not split
  EXPECT_LT(three.batches, two.batches);
  EXPECT_GE(one.checkpoint + one.more_copies, one.tables);
  EXPECT_EQ(one.few_copies + one.more_copies, one.tables);
  config.checkpoint.max_copies_mib = 64;
  EXPECT_EQ(Of(config).few_copies + Of(config).more_copies, 64 << 20);
  EXPECT_LT(Of(config).total() + Of(config).more_copies, one.total() + one.more_copies);
  config.checkpoint.max_copies_mib = 0;
  config.sharding.default_sharding = "row_wise";
  config.numerics.row_blocks = 64;
  EXPECT_LT(Of(config, 3).tables, one.tables * 0.36);
  config.sharding.tables["a"] = "replicated";
  EXPECT_GT(Of(config, 3).tables, one.tables * 0.65);
}

// Worker 1 has two of three small tables and needs the most, but worker 0 writes the dense part.
TEST(MemoryEstimate, CountsWhatACheckpointAdds) {
  DatasetSchema schema{.label = "label"};
  schema.categorical = {{"a", (1 << 18) + 1}, {"b", 1 << 18}, {"c", 1 << 18}};
  TrainConfig config;
  config.model.top_mlp = {4096, 4096};
  const auto estimate = [&](int workers) {
    const RunSpec spec = MakeRunSpec(config, schema, std::vector<double>{1, 1, 1});
    return EstimateMemory(spec, PlanOf(spec, Topology::OneHost(workers), 2), workers, 2);
  };
  constexpr int64_t kOneLayer = int64_t{4096} * 4096 * 4;
  EXPECT_GT(estimate(2).tables, estimate(1).tables / 2);
  const MemoryEstimate most = estimate(2);
  EXPECT_GT(most.checkpoint + most.more_copies, kOneLayer + estimate(1).tables / 3);
}

// 16 bytes each, and those that a worker of several receives.
TEST(MemoryEstimate, CountsRowsThatAreGrouped) {
  TrainConfig config;
  config.data.eval.path = "e";
  const auto batches = [&](int64_t grouped, int workers, int64_t key_groups = 0) {
    RunSpec spec = MakeRunSpec(config, SchemaOfTwoLargeTables(), std::vector<double>{1, 1});
    spec.memory.grouped = grouped;
    spec.memory.key_groups = key_groups;
    return EstimateMemory(spec, PlanOf(spec, Topology::OneHost(workers), 2), workers, 2).batches;
  };
  EXPECT_EQ(batches(1000, 1) - batches(0, 1), 16 * 1000);
  EXPECT_EQ(batches(1000, 4) - batches(0, 4), 2 * 16 * 250);
  EXPECT_EQ(batches(1000, 4, 8000) - batches(1000, 4), 8000);
}

TEST(MemoryEstimate, GrowsWithTheBatchAndTheLayers) {
  TrainConfig small, large;
  large.training.batch_size = 16 * small.training.batch_size;
  EXPECT_GT(Of(large).batches, 10 * Of(small).batches);
  EXPECT_EQ(Of(large).dense, Of(small).dense);
  large.model.top_mlp = {4096, 4096};
  EXPECT_GT(Of(large).dense, 10 * Of(small).dense);
}

// Of self_attention blocks, one after the other, over a long sequence; virtual workers of one
// sample.
RunSpec SpecOfAttention(int blocks, int64_t positions) {
  DatasetSchema schema{.label = "label"};
  schema.categorical = {{"item", 1000}, {"clicked", 1000}};
  schema.categorical[1].table = "item";
  schema.categorical[1].max_length = positions;
  Graph graph;
  std::string last = "embeddings.clicked";
  for (int i = 0; i < blocks; ++i) {
    const std::string name = fmt::format("a{}", i);
    graph.push_back({name, {last}, SelfAttention{.heads = 1, .dim = 16}});
    last = name;
  }
  graph.push_back({"pool", {last}, Pool{}});
  graph.push_back({"both", {"pool", "embeddings.item"}, Concat{}});
  graph.push_back({"logit", {"both"}, Mlp{.layers = {1}, .linear_output = true}});
  TrainConfig config;
  config.model.type = kBlocksType;
  config.model.blocks = BlocksOf(graph);
  config.numerics.virtual_workers = 8;
  config.training.batch_size = 8;
  return MakeRunSpec(config, schema, std::vector<double>{1, 1});
}

// What one more thread takes.
int64_t OfAThread(const RunSpec& spec) {
  const auto batches = [&](int threads) {
    return EstimateMemory(spec, PlanOf(spec, Topology::OneHost(1), threads), 1, threads).batches;
  };
  return batches(3) - batches(2);
}

// A head's weights and their gradients are a square of the positions for each thread, however many
// blocks there are.
TEST(MemoryEstimate, CountsWhatAThreadNeedsForOneSample) {
  constexpr int64_t kPositions = 2048;
  constexpr int64_t kSquares = 2 * kPositions * kPositions * int64_t{sizeof(float)};
  const int64_t of_one = OfAThread(SpecOfAttention(1, kPositions));
  EXPECT_GT(of_one - OfAThread(SpecOfAttention(0, kPositions)), kSquares);
  EXPECT_LT(OfAThread(SpecOfAttention(2, kPositions)) - of_one, kSquares / 2);
}

TEST(MemoryEstimate, CountsHowOftenIdsOccurAndTilesOfScores) {
  constexpr int64_t kIds = 1'000'000, kSamples = 4096;
  const auto batches = [&](bool popularity, int64_t virtual_workers) {
    TrainConfig config;
    config.model.type = "two_tower";
    config.model.item_features = {"item"};
    config.model.embedding_dim = 4;
    config.model.tower_mlp = {4};
    config.model.popularity = popularity;
    config.training.batch_size = kSamples;
    config.numerics.virtual_workers = static_cast<int>(virtual_workers);
    DatasetSchema schema{.label = "label"};
    schema.categorical = {{"user", 1000}, {"item", kIds}};
    const RunSpec spec = TestSpec(config, schema);
    return EstimateMemory(spec, PlanOf(spec, Topology::OneHost(1), 1), 1, 1).batches;
  };
  EXPECT_EQ(batches(true, 8) - batches(false, 8), 8 * kIds);
  // Of a thread: 64 scores of each sample, not one of each other sample.
  const int64_t scores = batches(false, 1) - batches(false, 8);
  EXPECT_GT(scores, kSamples * 7 / 8 * 64 * int64_t{sizeof(float)});
  EXPECT_LT(scores, kSamples * kSamples * int64_t{sizeof(float)} / 2);
}

int64_t ResidentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(MemoryEstimate, IsThatOfAWorkspace) {
  const RunSpec spec = SpecOfAttention(2, 2048);
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  const int64_t before = ResidentBytes();
  const std::unique_ptr<Model::Workspace> workspace = model->MakeWorkspace(spec.numerics.samples());
  const int64_t taken = ResidentBytes() - before, estimate = OfAThread(spec);
  EXPECT_GT(taken, int64_t{32} << 20);
  EXPECT_NEAR(static_cast<double>(taken), static_cast<double>(estimate), 4 << 20);
}

}  // namespace
}  // namespace renzan
