#include "renzan/embedding/ids_by_table.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

struct FeatureOf {
  std::vector<int64_t> values;
  std::vector<int32_t> offsets = {};
  std::vector<float> weights = {};
  IdsView view() const { return {values, offsets, weights}; }
};

template <typename Value>
std::vector<Value> Copied(std::span<const Value> values) {
  return {values.begin(), values.end()};
}

TEST(IdsByTable, ViewsTheIdsOfATableWithOneFeature) {
  const FeatureOf a = {{4, 2}}, b = {{1, 2, 3}, {0, 3, 3}};
  IdsByTable ids;
  const TableSpec of_a{.name = "a"}, of_b{.name = "b", .multi_hot = true};
  ids.Assign(std::vector{of_a, of_b}, std::vector{a.view(), b.view()});
  ASSERT_EQ(ids.views().size(), 2);
  EXPECT_EQ(ids.views()[0].values.data(), a.values.data());
  EXPECT_TRUE(ids.views()[0].offsets.empty());
  EXPECT_EQ(ids.views()[1].offsets.data(), b.offsets.data());
}

TEST(IdsByTable, AlternatesBetweenTheFeaturesOfATable) {
  const FeatureOf a = {{4, 2}}, b = {{7, 8}};
  IdsByTable ids;
  ids.Assign(std::vector{TableSpec{.name = "t", .features = {0, 0}}},
             std::vector{a.view(), b.view()});
  EXPECT_EQ(Copied(ids.views()[0].values), std::vector<int64_t>({4, 7, 2, 8}));
  EXPECT_TRUE(ids.views()[0].offsets.empty());
}

TEST(IdsByTable, HasABagForEachPositionOfASequence) {
  const FeatureOf item = {{4, 2}}, clicked = {{1, 2, 3}, {0, 1, 3}};
  const TableSpec table{.name = "item", .multi_hot = true, .features = {0, 3}};
  IdsByTable ids;
  ids.Assign(std::vector{table}, std::vector{item.view(), clicked.view()});
  EXPECT_EQ(table.bags(), 4);
  EXPECT_EQ(Copied(ids.views()[0].values), std::vector<int64_t>({4, 1, 2, 2, 3}));
  EXPECT_EQ(Copied(ids.views()[0].offsets), std::vector<int32_t>({0, 1, 2, 2, 2, 3, 4, 5, 5}));
}

TEST(IdsByTable, PoolsBagsBesideASequence) {
  const FeatureOf bag = {{5, 6}, {0, 2}}, sequence = {{1}, {0, 1}};
  IdsByTable ids;
  ids.Assign(std::vector{TableSpec{.name = "t", .multi_hot = true, .features = {0, 1}}},
             std::vector{bag.view(), sequence.view()});
  EXPECT_EQ(Copied(ids.views()[0].values), std::vector<int64_t>({5, 6, 1}));
  EXPECT_EQ(Copied(ids.views()[0].offsets), std::vector<int32_t>({0, 2, 3}));
}

TEST(IdsByTable, ViewsTheWeightsOfSums) {
  const FeatureOf a = {{4, 2, 9}, {0, 2, 3}, {0.5f, -2, 3}};
  IdsByTable ids;
  ids.Assign(std::vector{TableSpec{.name = "a", .multi_hot = true, .weighted = true}},
             std::vector{a.view()});
  EXPECT_EQ(ids.views()[0].weights.data(), a.weights.data());
}

// Bags of several ids, of none, of one, and of which all weights are 0.
TEST(IdsByTable, DividesTheWeightsOfMeansByTheirSums) {
  const FeatureOf a = {{4, 2, 9, 1, 7, 8}, {0, 3, 3, 4, 6}, {0.5f, 3, 0.5f, 7, 0, 0}};
  const std::vector tables = {
      TableSpec{.name = "a", .pooling = Pooling::kMean, .multi_hot = true, .weighted = true}};
  IdsByTable ids;
  for (int again = 0; again < 2; ++again) {
    ids.Assign(tables, std::vector{a.view()});
    EXPECT_EQ(Copied(ids.views()[0].weights), std::vector<float>({0.125f, 0.75f, 0.125f, 1, 0, 0}));
    EXPECT_EQ(ids.views()[0].values.data(), a.values.data());
  }
}

// Features without weights have weights of 1.
TEST(IdsByTable, MixesFeaturesWithAndWithoutWeights) {
  const FeatureOf a = {{4, 2}, {0, 2, 2}, {0.5f, 3}}, b = {{1, 5, 6}, {0, 1, 3}}, c = {{7, 8}};
  for (const Pooling pooling : {Pooling::kSum, Pooling::kMean}) {
    IdsByTable ids;
    ids.Assign(std::vector{TableSpec{.name = "t",
                                     .pooling = pooling,
                                     .multi_hot = true,
                                     .features = {0, 0, 0},
                                     .weighted = true}},
               std::vector{a.view(), b.view(), c.view()});
    EXPECT_EQ(Copied(ids.views()[0].values), std::vector<int64_t>({4, 2, 1, 7, 5, 6, 8}));
    EXPECT_EQ(Copied(ids.views()[0].weights),
              pooling == Pooling::kSum
                  ? std::vector<float>({0.5f, 3, 1, 1, 1, 1, 1})
                  : std::vector<float>({0.5f / 3.5f, 3 / 3.5f, 1, 1, 0.5f, 0.5f, 1}));
  }
}

TEST(IdsByTable, RefusesWeightsBelow0OfMeans) {
  const FeatureOf a = {{4, 2}, {0, 2}, {0.5f, -3}};
  IdsByTable ids;
  try {
    ids.Assign(std::vector{TableSpec{
                   .name = "a", .pooling = Pooling::kMean, .multi_hot = true, .weighted = true}},
               std::vector{a.view()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_STREQ(error.what(),
                 "table a: a bag has the weight -3, but pooling: mean divides by the sum of the "
                 "weights: use pooling: sum, or import weights from 0 on");
  }
}

TEST(IdsByTable, RefusesALongerSequence) {
  const FeatureOf sequence = {{1, 2, 3}, {0, 3}};
  IdsByTable ids;
  try {
    ids.Assign(std::vector{TableSpec{.name = "t", .multi_hot = true, .features = {2}}},
               std::vector{sequence.view()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_STREQ(error.what(), "table t: a sequence of 3 ids, but it has at most 2 positions");
  }
}

}  // namespace
}  // namespace renzan
