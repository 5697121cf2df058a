#include "renzan/planning/memory_estimate.h"

#include <gtest/gtest.h>

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

TEST(MemoryEstimate, GrowsWithTheBatchAndTheLayers) {
  TrainConfig small, large;
  large.training.batch_size = 16 * small.training.batch_size;
  EXPECT_GT(Of(large).batches, 10 * Of(small).batches);
  EXPECT_EQ(Of(large).dense, Of(small).dense);
  large.model.top_mlp = {4096, 4096};
  EXPECT_GT(Of(large).dense, 10 * Of(small).dense);
}

}  // namespace
}  // namespace renzan
