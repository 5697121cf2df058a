#include "renzan/planning/disk_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/testing.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/saving/snapshot.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

DatasetSchema SchemaOf(int64_t rows_of_b) {
  return {.label = "y",
          .dense = {"d"},
          .categorical = {{"a", 2'000'000}, {"b", rows_of_b}, {"c", 30'000'000}}};
}

RunSpec SpecOf(int64_t rows_of_b) {
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  config.model.embedding_dim = 16;
  config.optimizer.sparse.type = "rowwise_adagrad";
  return MakeRunSpec(config, SchemaOf(rows_of_b), std::vector<double>{1, 1, 1});
}

TEST(DiskUse, IsWhatASnapshotTakes) {
  for (const std::string& optimizer : SparseOptimizerNames()) {
    TrainConfig config = SmallConfig();
    config.optimizer.sparse.type = optimizer;
    config.comm.backward = "fp16";
    config.comm.error_feedback_rows = 4;
    const DatasetSchema schema = TestSchema();
    RunRanksAsThreads(1, [&](Communicator& comm) {
      ThreadPool pool(1);
      TestModel model(config, schema, comm, pool);
      const DiskUse use = DiskUseOf(model.step().spec());
      EXPECT_EQ(use.model() + use.feedback,
                static_cast<int64_t>(EstimateBytes(model.Updated(), {.with_dense = true}).full))
          << optimizer;
    });
  }
}

// Of 'b', which is saved sparsely if few rows are trained; 'a' of 1,000 rows is too small for that.
TEST(DiskUse, CountsOnlyRowsThatTheRunCanTrain) {
  const RunSpec spec = SpecOf(100'000'000);
  constexpr int64_t kRow = 16 * 4 + 4, kRows = 100'000'000;
  EXPECT_EQ(DiskUseOf(spec).tables[1], kRows * kRow);
  EXPECT_EQ(DiskUseOf(spec, 2000).tables[1], 2000 * (kRow + 4));
  EXPECT_EQ(DiskUseOf(spec, 24'000'000).tables[1], kRows * kRow);
  EXPECT_EQ(DiskUseOf(SpecOf(1000), 1).tables[1], 1000 * kRow);
}

TEST(DiskUse, AdviceNamesTheLargestTableThatTheRunCannotTouch) {
  const RunSpec spec = SpecOf(100'000'000);
  DatasetSchema schema = SchemaOf(100'000'000);
  EXPECT_THAT(UntouchedRowsAdvice(spec, schema, 2000),
              AllOf(HasSubstr("the table of 'b' takes 6.8 GB of memory and is the largest of 2"),
                    HasSubstr("of its 100000000 rows this run can look up at most 2000"),
                    HasSubstr("--vocabulary 'b=hash:20000'")));
  // Values that the data had were counted one by one; another day may not have them all.
  for (CategoricalFeature& feature : schema.categorical) feature.vocabulary = "threshold:2 #0123";
  EXPECT_EQ(UntouchedRowsAdvice(spec, schema, 2000), "");
  // A day's data may well touch them, and small tables are no trouble.
  EXPECT_EQ(UntouchedRowsAdvice(spec, schema, 50'000'000), "");
  EXPECT_THAT(UntouchedRowsAdvice(SpecOf(1000), SchemaOf(1000), 2000),
              AllOf(HasSubstr("table of 'c'"), Not(HasSubstr("largest of"))));
}

TEST(DiskUse, AdviceOnADiskThatIsTooSmall) {
  const DiskUse use{
      .dense = 10'000'000, .tables = {990'000'000}, .feedback = 50'000'000, .progress = 50'000'000};
  const int64_t both = use.model() + use.checkpoint();
  EXPECT_EQ(DiskSpaceAdvice(use, both, "runs/a", both), "");
  EXPECT_THAT(
      DiskSpaceAdvice(use, both, "runs/a", both - 1),
      HasSubstr("a full checkpoint takes 1.1 GB, the model 1.0 GB, but only 2.1 GB are free "
                "in runs/a"));
}

}  // namespace
}  // namespace renzan
