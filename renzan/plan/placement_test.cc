#include "renzan/plan/placement.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(PlaceTableWise, BalancesTrafficThenBytes) {
  std::vector<TableSpec> tables;
  for (int64_t rows : {1000, 10, 900, 20})
    tables.push_back({.num_embeddings = rows, .embedding_dim = 16});
  // Largest first, alternating, the lighter worker first once the traffic is even.
  EXPECT_EQ(PlaceTableWise(tables, 2), (std::vector<int>{0, 0, 1, 1}));
  tables.push_back({.num_embeddings = 5, .embedding_dim = 16, .pooling_factor = 4});
  EXPECT_EQ(PlaceTableWise(tables, 2), (std::vector<int>{1, 1, 1, 1, 0}));
}

TEST(PlaceTableWise, MoreWorkersThanTables) {
  const std::vector<TableSpec> tables(2, {.num_embeddings = 8, .embedding_dim = 4});
  EXPECT_EQ(PlaceTableWise(tables, 4), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace renzan
