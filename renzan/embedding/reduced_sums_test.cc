#include "renzan/embedding/reduced_sums.h"

#include <gtest/gtest.h>

#include "renzan/comm/testing.h"

namespace renzan {
namespace {

// Each of three workers adds what its samples looked up: rows 0, 1 and 2 in turn. A larger table is
// not reduced, and neither is one that is not replicated.
TEST(ReducedSums, AreOverAllWorkers) {
  constexpr int64_t kBatch = 64, kWidth = 2;
  const std::vector<TableSpec> tables = {
      {.name = "small", .num_embeddings = 3, .embedding_dim = kWidth},
      {.name = "large", .num_embeddings = 1000, .embedding_dim = kWidth},
      {.name = "whole", .num_embeddings = 3, .embedding_dim = kWidth}};
  const ShardingPlan plan = {
      {{0, {0, 1}, 0, kEveryRank}, {1, {0, 1}, 0, kEveryRank}, {2, {0, 1}, 0, 0}}};
  std::vector<int64_t> ids(kBatch);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i % 3);
  RunRanksAsThreads(3, [&](Communicator& comm) {
    ThreadPool pool(1);
    const ShardMap map(tables, plan, 3, comm.rank(), 8, kBatch);
    const int64_t n = map.samples_per_virtual_worker();
    const auto own = std::span(ids).subspan(static_cast<size_t>(map.own().begin * n),
                                            static_cast<size_t>(map.own().size() * n));
    InputDist dist(comm, pool, map);
    dist.Start(std::vector<IdsView>(3, IdsView{own, {}}));
    dist.Continue();
    dist.Finish();
    ReducedSums sums(comm, pool, map, RowCodec::kFloat32);
    ASSERT_TRUE(sums.Has(0));
    for (size_t held = 1; held < map.held().size(); ++held) EXPECT_FALSE(sums.Has(held));
    // The gradient of sample s is (1, s).
    std::vector<float> gradients;
    for (int64_t s = 0; s < kBatch; ++s)
      gradients.insert(gradients.end(), {1.0f, static_cast<float>(s)});
    for (int v = map.own().begin; v < map.own().end; ++v)
      sums.Add(dist.of_held(0), 0, v, gradients.data());
    sums.Start();
    sums.Finish();
    std::vector<float> expected(3 * kWidth);
    for (int64_t s = 0; s < kBatch; ++s) {
      expected[static_cast<size_t>(s % 3 * kWidth)] += 1;
      expected[static_cast<size_t>(s % 3 * kWidth + 1)] += static_cast<float>(s);
    }
    EXPECT_EQ(std::vector<float>(sums.Of(0), sums.Of(0) + 3 * kWidth), expected);
    EXPECT_EQ(sums.Of(1), nullptr);
  });
}

}  // namespace
}  // namespace renzan
