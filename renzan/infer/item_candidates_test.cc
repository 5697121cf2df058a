#include "renzan/infer/item_candidates.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

const DatasetSchema kSchema = {.label = "label",
                               .dense = {"price"},
                               .categorical = {{"user", 9}, {"item", 9}, {"tags", 9, true}}};

// Rows of (user, item, tags).
Batch Rows(const std::vector<int64_t>& users, const std::vector<int64_t>& items,
           const std::vector<std::vector<int64_t>>& tags) {
  Batch batch;
  batch.size = std::ssize(users);
  batch.categorical = {{users, {}}, {items, {}}, {{}, {0}}};
  for (const std::vector<int64_t>& each : tags) {
    FeatureIds& ids = batch.categorical[2];
    ids.values.insert(ids.values.end(), each.begin(), each.end());
    ids.offsets.push_back(static_cast<int32_t>(ids.values.size()));
  }
  return batch;
}

std::vector<int64_t> Numbers(const ItemCandidates& candidates, const Batch& batch) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < batch.size; ++i) numbers.push_back(candidates.NumberOf(batch, i));
  return numbers;
}

TEST(ItemCandidates, AreDistinctInWhatTheItemReads) {
  const Batch batch =
      Rows({1, 2, 3, 4, 5, 6}, {7, 8, 7, 7, 8, 7}, {{1, 2}, {1}, {1, 2}, {1}, {}, {2, 1}});
  ItemCandidates by_item({.features = {"item"}}, kSchema);
  ItemCandidates by_both({.features = {"item", "tags"}}, kSchema);
  for (ItemCandidates* candidates : {&by_item, &by_both})
    for (int64_t i = 0; i < batch.size; ++i) candidates->Add(batch, i, 100 + i);
  EXPECT_EQ(Numbers(by_item, batch), (std::vector<int64_t>{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(Numbers(by_both, batch), (std::vector<int64_t>{0, 1, 0, 2, 3, 4}));
  EXPECT_EQ(by_both.size(), 5);
  EXPECT_EQ(by_both.row(0), 100);
  EXPECT_EQ(by_both.row(3), 104);
  EXPECT_GT(by_both.bytes(), by_item.bytes());
}

TEST(ItemCandidates, MayReadDenseFeatures) {
  Batch batch = Rows({1, 1, 1}, {7, 7, 7}, {{}, {}, {}});
  batch.dense = {0.5f, 1, 0.5f};
  ItemCandidates candidates({.dense = true, .features = {"item"}}, kSchema);
  for (int64_t i = 0; i < batch.size; ++i) candidates.Add(batch, i, i);
  EXPECT_EQ(Numbers(candidates, batch), (std::vector<int64_t>{0, 1, 0}));
}

// One bag's values are not taken for the next one's.
TEST(ItemCandidates, KeepsBagsApart) {
  DatasetSchema schema = kSchema;
  schema.categorical[1].multi_hot = true;
  Batch batch = Rows({1, 1}, {}, {{}, {7}});
  batch.categorical[1] = {{7}, {0, 1, 1}};
  ItemCandidates candidates({.features = {"item", "tags"}}, schema);
  for (int64_t i = 0; i < 2; ++i) candidates.Add(batch, i, i);
  EXPECT_EQ(candidates.size(), 2);
}

}  // namespace
}  // namespace renzan
