#include "renzan/run_spec/item_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/step/testing.h"

namespace renzan {
namespace {

TEST(ItemInputs, AreTheFirstSampleOfAnIdAndItsShare) {
  TrainConfig config = SmallConfig();
  config.model.type = "two_tower";
  config.model.item_features = {"b", "m"};
  const RunSpec spec = TestSpec(config);
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  const FeatureLookups lookups = LookupsOf(spec.tables, spec.features, *model);
  IdCounts counts{.of_id = std::vector<int64_t>(1000), .rows = 40};
  counts.of_id[7] = 30;
  counts.of_id[999] = 9;
  counts.of_id[0] = 1;
  const ItemInputs inputs(*model, lookups, {counts});
  Batch batch;
  batch.size = 8;
  batch.categorical.resize(4);
  batch.categorical[1].values = {5, 999, 7, 999, 0, 7, 7, 999};
  const std::unique_ptr<Model::Workspace> workspace = model->MakeWorkspace(6);
  inputs.Read(batch, 1, 6, workspace.get());
  const SampleItems& items = workspace->items.at(0);
  EXPECT_EQ(items.first, (std::vector<int32_t>{0, 1, 0, 3, 1, 1}));
  const int64_t expected[] = {9, 30, 9, 1, 30, 30};
  for (size_t i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(items.log_shares[i], std::log(static_cast<float>(expected[i]) / 40)) << i;
}

TEST(ItemInputs, NeedAFeatureWithOneValue) {
  TrainConfig config = SmallConfig();
  config.model.type = "two_tower";
  config.model.item_features = {"m", "b"};
  try {
    MakeModel(TestSpec(config).model);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_STREQ(
        error.what(),
        "model.type: two_tower: block logit: item: the dataset has no categorical feature 'm' "
        "with one value in each row");
  }
}

}  // namespace
}  // namespace renzan
