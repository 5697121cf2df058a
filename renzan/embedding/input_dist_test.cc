#include "renzan/embedding/input_dist.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/philox.h"
#include "renzan/comm/testing.h"
#include "renzan/plan/testing.h"

namespace renzan {
namespace {

// Tables of more than 2^32 rows: every id arrives at the shard that has it, as a row of 32 bits.
TEST(InputDist, DividesWideIds) {
  constexpr int64_t kGlobal = 48, kRows = (int64_t{1} << 33) + 12345;
  constexpr int kParts = 8;  // virtual workers
  const std::vector<TableSpec> tables = {
      {.name = "one", .num_embeddings = kRows, .embedding_dim = 4, .row_blocks = 32},
      {.name = "bags",
       .num_embeddings = kRows,
       .embedding_dim = 4,
       .multi_hot = true,
       .row_blocks = 32}};
  const auto bag_of = [&](size_t table, int64_t sample) {
    const uint64_t s = static_cast<uint64_t>(sample);
    std::vector<int64_t> bag(table == 0 ? 1 : static_cast<size_t>(sample % 4));
    for (size_t i = 0; i < bag.size(); ++i) {
      const Philox::Block words = Philox::Draw(table, s, static_cast<uint32_t>(i));
      bag[i] = static_cast<int64_t>((uint64_t{words[0]} << 32 | words[1]) % uint64_t{kRows});
    }
    return bag;
  };
  for (const int world : {5, 7}) {
    ShardingPlan plan;  // row-wise, as evenly as blocks allow
    for (size_t t = 0; t < tables.size(); ++t)
      for (int block = 0; block < 32; block += 4)
        plan.shards.push_back({t, {block, block + 4}, 0, block / 4 % world});
    RunRanksAsThreads(world, [&](Communicator& comm) {
      ThreadPool pool(2);
      const ShardMap map(tables, plan, world, comm.rank(), kParts, kGlobal);
      const int64_t begin = map.own().begin * map.samples_per_virtual_worker();
      const int64_t end = map.own().end * map.samples_per_virtual_worker();
      std::vector<std::vector<int64_t>> values(2);
      std::vector<int32_t> offsets = {0};
      for (int64_t sample = begin; sample < end; ++sample) {
        for (size_t t = 0; t < 2; ++t)
          for (const int64_t id : bag_of(t, sample)) values[t].push_back(id);
        offsets.push_back(static_cast<int32_t>(values[1].size()));
      }
      InputDist dist(comm, pool, map);
      dist.Start(std::vector<IdsView>{{values[0], {}}, {values[1], offsets}});
      dist.Continue();
      dist.Finish();
      for (size_t held = 0; held < map.held().size(); ++held) {
        const Shard& shard = map.shards()[map.held()[held]];
        std::vector<int32_t> expected;
        for (int64_t sample = 0; sample < kGlobal; ++sample) {
          std::vector<int64_t> bag = bag_of(shard.table, sample);
          std::stable_sort(bag.begin(), bag.end(),
                           [](int64_t a, int64_t b) { return a % 32 < b % 32; });
          for (const int64_t id : bag)
            if (id % 32 >= shard.row_blocks.begin && id % 32 < shard.row_blocks.end)
              expected.push_back(map.rows_of(map.held()[held]).Local(id));
        }
        EXPECT_EQ(dist.of_held(held).rows, expected) << "shard " << held << " of " << comm.rank();
        for (const int32_t row : expected)
          EXPECT_TRUE(row >= 0 && row < map.rows_of(map.held()[held]).size());
      }
    });
  }
}

}  // namespace
}  // namespace renzan
