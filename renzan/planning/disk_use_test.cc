#include "renzan/planning/disk_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/testing.h"
#include "renzan/saving/snapshot.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunSpec SpecOf(int64_t rows_of_b) {
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  config.model.embedding_dim = 16;
  config.optimizer.sparse.type = "rowwise_adagrad";
  const DatasetSchema schema{
      .label = "y",
      .dense = {"d"},
      .categorical = {{"a", 2'000'000}, {"b", rows_of_b}, {"c", 30'000'000}}};
  return MakeRunSpec(config, schema, std::vector<double>{1, 1, 1});
}

TEST(DiskUse, IsWhatASnapshotTakes) {
  for (const char* optimizer : {"sgd", "adagrad", "rowwise_adagrad"}) {
    TrainConfig config = SmallConfig();
    config.optimizer.sparse.type = optimizer;
    config.comm.backward = "fp16";
    config.comm.error_feedback_rows = 4;
    const DatasetSchema schema = TestSchema();
    RunRanksAsThreads(1, [&](Communicator& comm) {
      ThreadPool pool(1);
      TestModel model(config, schema, comm, pool);
      EXPECT_EQ(DiskUseOf(model.step().spec()).total(),
                static_cast<int64_t>(EstimateBytes(model.Updated(), {.with_dense = true}).full))
          << optimizer;
    });
  }
}

TEST(DiskUse, AdviceNamesTheLargestTableThatTheRunCannotTouch) {
  const RunSpec spec = SpecOf(100'000'000);
  const DiskUse use = DiskUseOf(spec);
  EXPECT_EQ(use.tables[1], int64_t{100'000'000} * (16 * 4 + 4));
  EXPECT_THAT(UntouchedRowsAdvice(spec, use, 2000),
              AllOf(HasSubstr("a full checkpoint takes 9.0 GB, and so does the model, 6.8 GB of it "
                              "for the table of 'b', the largest of 2 like it"),
                    HasSubstr("100000000 rows, of which this run can look up at most 2000"),
                    HasSubstr("--vocabulary 'b=hash:20000'")));
  // A day's data may well touch them, and small tables are no trouble.
  EXPECT_EQ(UntouchedRowsAdvice(spec, use, 50'000'000), "");
  EXPECT_THAT(UntouchedRowsAdvice(SpecOf(1000), DiskUseOf(SpecOf(1000)), 2000),
              AllOf(HasSubstr("table of 'c'"), Not(HasSubstr("largest of"))));
}

TEST(DiskUse, AdviceOnADiskThatIsTooSmall) {
  const DiskUse use{.dense = 10'000'000, .tables = {990'000'000}};
  EXPECT_EQ(DiskSpaceAdvice(use, 2, "runs/a", 2'000'000'000), "");
  EXPECT_THAT(DiskSpaceAdvice(use, 2, "runs/a", 1'999'000'000),
              HasSubstr("takes 1.0 GB, and so does the model, but only 2.0 GB are free in runs/a"));
  EXPECT_NE(DiskSpaceAdvice(use, 1, "runs/a", 999'000'000), "");
}

}  // namespace
}  // namespace renzan
