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

// One batch after the other through the same object, of tables that are divided or not: every bag
// is whole and in its virtual worker, wherever its shard is.
TEST(InputDist, BagsArriveWhole) {
  constexpr int64_t kGlobal = 48, kRows = 1000;
  constexpr int kParts = 8;  // virtual workers
  const auto table = [&](const char* name, bool multi_hot, int rows, int columns) {
    return TableSpec{.name = name,
                     .num_embeddings = kRows,
                     .embedding_dim = 8,
                     .multi_hot = multi_hot,
                     .row_blocks = rows,
                     .column_blocks = columns};
  };
  const std::vector<TableSpec> tables = {
      table("one", false, 1, 1), table("bags", true, 1, 1), table("columns", false, 1, 2),
      table("bags of columns", true, 1, 2), table("blocks", true, 4, 2)};
  // Some batches have no lookup at all in some tables.
  const auto bag_of = [&](size_t t, int64_t batch, int64_t sample) {
    const uint64_t s = static_cast<uint64_t>(batch * kGlobal + sample);
    const size_t most = t % 2 == 1 && batch == 1 ? 1 : 4;
    std::vector<int64_t> bag(tables[t].multi_hot ? static_cast<size_t>(s) % most : 1);
    for (size_t i = 0; i < bag.size(); ++i)
      bag[i] = Philox::Draw(t, s, static_cast<uint32_t>(i))[0] % kRows;
    std::stable_sort(bag.begin(), bag.end(), [&](int64_t a, int64_t b) {
      return a % tables[t].row_blocks < b % tables[t].row_blocks;
    });
    return bag;
  };
  for (const int world : {1, 2, 3}) {
    ShardingPlan plan;
    for (size_t t = 0; t < tables.size(); ++t)
      for (int block = 0; block < tables[t].row_blocks; ++block)
        for (int column = 0; column < tables[t].column_blocks; ++column)
          plan.shards.push_back(
              {t, {block, block + 1}, column, static_cast<int>(plan.shards.size()) % world});
    RunRanksAsThreads(world, [&](Communicator& comm) {
      ThreadPool pool(2);
      const ShardMap map(tables, plan, world, comm.rank(), kParts, kGlobal);
      const int64_t of_worker = map.samples_per_virtual_worker();
      InputDist dist(comm, pool, map);
      for (int64_t batch = 0; batch < 3; ++batch) {
        std::vector<std::vector<int64_t>> values(tables.size());
        std::vector<std::vector<int32_t>> offsets(tables.size());
        std::vector<IdsView> views;
        for (size_t t = 0; t < tables.size(); ++t) {
          if (tables[t].multi_hot) offsets[t].push_back(0);
          for (int64_t s = map.own().begin * of_worker; s < map.own().end * of_worker; ++s) {
            for (const int64_t id : bag_of(t, batch, s)) values[t].push_back(id);
            if (tables[t].multi_hot) offsets[t].push_back(static_cast<int32_t>(values[t].size()));
          }
          views.push_back({values[t], offsets[t]});
        }
        dist.Start(views);
        dist.Continue();
        dist.Finish();
        for (size_t held = 0; held < map.held().size(); ++held) {
          const Shard& shard = map.shards()[map.held()[held]];
          const ShardIds& ids = dist.of_held(held);
          size_t bags = 0;
          for (int64_t sample = 0; sample < kGlobal; ++sample) {
            if (sample % of_worker == 0) {
              EXPECT_EQ(ids.first_bag[static_cast<size_t>(sample / of_worker)],
                        static_cast<int32_t>(bags));
            }
            std::vector<int32_t> expected;
            for (const int64_t id : bag_of(shard.table, batch, sample))
              if (id % tables[shard.table].row_blocks == shard.row_blocks.begin)
                expected.push_back(map.rows_of(map.held()[held]).Local(id));
            if (expected.empty()) continue;
            ASSERT_LT(bags, ids.num_bags());
            const std::span<const int32_t> bag = ids.Bag(bags);
            EXPECT_EQ(std::vector<int32_t>(bag.begin(), bag.end()), expected)
                << tables[shard.table].name << ", sample " << sample << " of batch " << batch;
            EXPECT_EQ(ids.virtual_worker[bags], sample / of_worker);
            ++bags;
          }
          EXPECT_EQ(ids.num_bags(), bags);
          EXPECT_EQ(ids.first_bag.back(), static_cast<int32_t>(bags));
        }
      }
    });
  }
}

}  // namespace
}  // namespace renzan
