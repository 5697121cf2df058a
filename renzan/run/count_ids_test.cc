#include "renzan/run/count_ids.h"

#include <gtest/gtest.h>

#include "renzan/base/file/file.h"
#include "renzan/data/dataset/dataset_writer.h"

namespace renzan {
namespace {

TEST(CountIds, CountsTheRowsInUse) {
  TemporaryDirectory dir;
  constexpr int64_t kRows = 20'000;
  {
    DatasetWriter writer(dir / "data",
                         {.label = "y", .dense = {"d"}, .categorical = {{"user", 3}, {"item", 7}}},
                         {.shard_rows = 6000});
    for (int64_t row = 0; row < kRows; ++row) {
      const float dense[] = {0};
      const int64_t ids[] = {row % 3, row % 5};
      writer.Append(1, dense, ids);
    }
    writer.Finish();
  }
  const Dataset dataset(dir / "data");
  TrainConfig config;
  config.model.type = "two_tower";
  config.model.item_features = {"item"};
  const std::vector<double> pooling_factors = {1, 1};
  const RunSpec spec = MakeRunSpec(config, dataset.schema(), pooling_factors);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const std::vector<IdCounts> counts =
        CountIds(spec, *MakeModel(spec.model), {&dataset, {1, 10'003}}, pool);
    ASSERT_EQ(counts.size(), 1u);
    EXPECT_EQ(counts[0].rows, 10'002);
    EXPECT_EQ(counts[0].of_id, (std::vector<int64_t>{2000, 2001, 2001, 2000, 2000, 0, 0}));
  }
  config.model.popularity = false;
  const RunSpec without = MakeRunSpec(config, dataset.schema(), pooling_factors);
  ThreadPool pool(1);
  EXPECT_TRUE(CountIds(without, *MakeModel(without.model), {&dataset, {0, kRows}}, pool).empty());
}

}  // namespace
}  // namespace renzan
