#include "renzan/data/sampled_negatives.h"

#include <gtest/gtest.h>

#include <map>

namespace renzan {
namespace {

Batch BatchOfItems(std::vector<int64_t> items) {
  Batch batch;
  batch.size = std::ssize(items);
  batch.categorical = {{.values = {}, .offsets = {}}, {.values = std::move(items), .offsets = {}}};
  return batch;
}

SampledNegatives FromIds(int64_t begin, int64_t end, int64_t count, uint64_t seed = 7) {
  return SampledNegatives(
      seed, {{.name = "item", .feature = 1, .count = count, .ids_begin = begin, .ids_end = end}});
}

TEST(SampledNegatives, AreUniformOverAllIdsButTheOwnOne) {
  // 0 and 1 mean no item, and may be the own id, too.
  const std::vector<int64_t> items = {2, 4, 6, 0, 1};
  constexpr int64_t kCount = 3, kSteps = 4000;
  const SampledNegatives negatives = FromIds(2, 7, kCount);
  std::vector<std::map<int64_t, int>> seen(items.size());
  for (int64_t step = 0; step < kSteps; ++step) {
    Batch batch = BatchOfItems(items);
    negatives.Draw(step, 10, &batch);
    ASSERT_EQ(batch.negatives.size(), 1u);
    const FeatureIds& drawn = batch.negatives[0];
    EXPECT_EQ(drawn.offsets, (std::vector<int32_t>{0, 3, 6, 9, 12, 15}));
    for (size_t i = 0; i < drawn.values.size(); ++i)
      ++seen[i / static_cast<size_t>(kCount)][drawn.values[i]];
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t others = items[i] >= 2 ? 4 : 5;
    EXPECT_EQ(seen[i].size(), others) << i;
    EXPECT_EQ(seen[i].count(items[i]), 0u) << i;
    for (const auto& [id, times] : seen[i]) {
      EXPECT_TRUE(id >= 2 && id < 7);
      EXPECT_NEAR(times * static_cast<double>(others) / (kCount * kSteps), 1, 0.1);
    }
  }
}

TEST(SampledNegatives, DependOnTheSamplesPlaceInTheGlobalBatchAlone) {
  const std::vector<int64_t> items = {5, 3, 9, 3, 8, 7};
  const SampledNegatives negatives = FromIds(0, 1'000'000'000'000, 5);
  Batch whole = BatchOfItems(items);
  negatives.Draw(3, 0, &whole);
  for (const size_t begin : {1, 4}) {
    Batch part = BatchOfItems({items.begin() + static_cast<int64_t>(begin), items.end()});
    negatives.Draw(3, static_cast<int64_t>(begin), &part);
    EXPECT_TRUE(std::equal(part.negatives[0].values.begin(), part.negatives[0].values.end(),
                           whole.negatives[0].values.begin() + static_cast<int64_t>(5 * begin)));
  }
  for (const auto& [step, seed] : {std::pair<int64_t, uint64_t>{4, 7}, {3, 8}}) {
    Batch other = BatchOfItems(items);
    FromIds(0, 1'000'000'000'000, 5, seed).Draw(step, 0, &other);
    EXPECT_NE(other.negatives[0].values, whole.negatives[0].values);
  }
}

}  // namespace
}  // namespace renzan
