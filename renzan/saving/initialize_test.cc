#include "renzan/saving/initialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/saving/match_parts.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

// Of each row of each table: its values and, after them, each of its optimizer states.
using Rows = std::map<std::string, std::map<int64_t, std::vector<float>>>;

// Adds the rows that this worker holds.
void AddRows(TestModel& model, Rows* all) {
  const SparseOptimizerType optimizer = model.embeddings().optimizer();
  for (EmbeddingShard& shard : model.embeddings().shards()) {
    const int64_t dim = shard.dim(), whole = shard.table.embedding_dim;
    const int64_t width = shard.store->layout().state_width;
    std::vector<float> values(static_cast<size_t>(dim + width));
    for (const EmbeddingShard::Block& block : shard.blocks)
      for (int64_t i = 0; i < block.num_rows; ++i) {
        shard.store->CopyWeights(block.first_row + i, 1,
                                 reinterpret_cast<std::byte*>(values.data()));
        shard.store->CopyState(block.first_row + i, 1,
                               reinterpret_cast<std::byte*>(values.data() + dim));
        std::vector<float>& row =
            (*all)[shard.table.name][i * shard.table.row_blocks + block.row_block];
        row.resize(static_cast<size_t>(whole + StateFloatsPerRow(optimizer, whole)));
        std::copy_n(values.begin(), dim, row.begin() + shard.first_column());
        const auto states = InfoOf(optimizer).states;
        for (size_t s = 0; s < states.size(); ++s) {
          const StatePart part = PartOfState(optimizer, s, dim);
          std::copy_n(values.begin() + dim + part.first, part.width,
                      row.begin() + whole + PartOfState(optimizer, s, whole).first +
                          (states[s].per_row ? 0 : shard.first_column()));
        }
      }
  }
}

TrainConfig ConfigWith(const std::string& optimizer, int row_blocks, int column_blocks) {
  TrainConfig config = CheckpointingConfig();
  config.optimizer.sparse.type = optimizer;
  config.optimizer.sparse.initial_accumulator = 0.5;
  config.numerics.row_blocks = row_blocks;
  config.numerics.column_blocks = column_blocks;
  config.checkpoint.every_steps = 2;
  return config;
}

// What another run has trained, as its newest checkpoint: an increment.
struct Earlier {
  TemporaryDirectory dir;
  std::string path;
  Rows rows;
  std::vector<float> parameters, adam_m;

  explicit Earlier(const TrainConfig& config) {
    std::mutex mutex;
    RunRanksAsThreads(2, [&](Communicator& comm) {
      Trainer trainer(comm, config, dir.path(), SystemClock());
      trainer.TrainTo(5);
      trainer.StopHere();
      std::lock_guard lock(mutex);
      AddRows(trainer.model, &rows);
      const auto values = trainer.model.parameters().span();
      parameters.assign(values.begin(), values.end());
      const auto moments = trainer.model.dense_optimizer().states()[0].values.span();
      adam_m.assign(moments.begin(), moments.end());
    });
    const CheckpointEntry newest = ListCheckpoints(dir.path()).front();
    EXPECT_EQ(newest.step, 5);
    path = newest.path;
  }
};

// Of TestSchema(): a grows, b has other values in another order, and m stays.
DatasetSchema LaterSchema() {
  DatasetSchema schema = TestSchema();
  schema.categorical[0].num_embeddings = 9;
  schema.categorical[1].num_embeddings = 900;
  schema.categorical[3].num_embeddings = 310;
  return schema;
}
InitialModel LaterModel() {
  RowOrigins b{.rows = 900, .earlier_rows = 1000, .same = 2, .others = {}};
  for (int32_t row = 2; row < 900; ++row)
    b.others.push_back(row % 5 == 0 ? -1 : (row * 7 + 3) % 1000);
  return {.tables = {{.rows = 9, .earlier_rows = 7, .same = 7, .others = {}},
                     b,
                     {.rows = 50, .earlier_rows = 50, .same = 50, .others = {}},
                     {.rows = 310, .earlier_rows = 300, .same = 300, .others = {}}},
          .dense_states = true,
          .row_states = true};
}

// Loads it on so many workers and compares every row with where it comes from.
void ExpectLoaded(const Earlier& earlier, const TrainConfig& config, const InitialModel& initial,
                  int workers) {
  const DatasetSchema schema = LaterSchema();
  std::mutex mutex;
  Rows drawn, loaded;
  RunRanksAsThreads(workers, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel untouched(config, schema, comm, pool), model(config, schema, comm, pool);
    CheckpointReader reader(earlier.path);
    CheckInitialShapes(reader, model.Updated().tables(), initial);
    LoadInitialModel(reader, initial, &model.Updated());
    std::lock_guard lock(mutex);
    AddRows(untouched, &drawn);
    AddRows(model, &loaded);
    EXPECT_THAT(model.parameters().span(), ::testing::ElementsAreArray(earlier.parameters));
    const auto moments = model.dense_optimizer().states()[0].values.span();
    if (initial.dense_states)
      EXPECT_THAT(moments, ::testing::ElementsAreArray(earlier.adam_m));
    else
      EXPECT_THAT(moments, ::testing::Each(0.0f));
  });
  for (size_t t = 0; t < schema.categorical.size(); ++t) {
    const std::string& name = schema.categorical[t].name;
    ASSERT_EQ(std::ssize(loaded.at(name)), schema.categorical[t].num_embeddings);
    for (const auto& [row, values] : loaded.at(name)) {
      const int64_t from = initial.tables[t].Of(row);
      std::vector<float> expected = drawn.at(name).at(row);
      if (from >= 0) {
        const std::vector<float>& there = earlier.rows.at(name).at(from);
        const size_t taken =
            initial.row_states ? there.size() : static_cast<size_t>(config.model.embedding_dim);
        std::copy_n(there.begin(), taken, expected.begin());
      }
      ASSERT_EQ(values, expected) << name << " row " << row << " from " << from;
    }
  }
}

TEST(Initialize, RowsFollowTheirValuesBetweenAnyBlocks) {
  for (const char* optimizer : {"adagrad", "rowwise_adagrad", "sgd", "adam"}) {
    SCOPED_TRACE(optimizer);
    const Earlier earlier(ConfigWith(optimizer, 2, 4));
    InitialModel initial = LaterModel();
    for (const auto& [row_blocks, column_blocks, workers, sharding] :
         std::vector<std::tuple<int, int, int, const char*>>{{2, 4, 1, "table_wise"},
                                                             {4, 2, 3, "table_wise"},
                                                             {1, 1, 2, "auto"},
                                                             {4, 8, 2, "row_wise"}}) {
      TrainConfig config = ConfigWith(optimizer, row_blocks, column_blocks);
      config.seed = 77;
      config.sharding.default_sharding = sharding;
      ExpectLoaded(earlier, config, initial, workers);
    }
    initial.row_states = initial.dense_states = false;
    ExpectLoaded(earlier, ConfigWith(optimizer, 2, 2), initial, 2);
  }
}

TEST(Initialize, WhatIsNotTakenStaysAsDrawn) {
  const TrainConfig config = ConfigWith("adagrad", 2, 4);
  const Earlier earlier(config);
  InitialModel initial = LaterModel();
  initial.tables[1] = {.rows = 900};
  initial.other_parameters = {"bottom.0.weight", "top.0.bias"};
  std::mutex mutex;
  Rows drawn, loaded;
  RunRanksAsThreads(2, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel untouched(config, LaterSchema(), comm, pool),
        model(config, LaterSchema(), comm, pool);
    CheckpointReader reader(earlier.path);
    CheckInitialShapes(reader, model.Updated().tables(), initial);
    LoadInitialModel(reader, initial, &model.Updated());
    for (const Parameter& parameter : model.model().layout().parameters()) {
      const auto part = [&](std::span<const float> all) {
        return all.subspan(static_cast<size_t>(parameter.offset),
                           static_cast<size_t>(parameter.size));
      };
      const bool taken = !initial.other_parameters.contains(parameter.name);
      EXPECT_THAT(part(model.parameters().span()),
                  ::testing::ElementsAreArray(
                      part(taken ? std::span<const float>(earlier.parameters)
                                 : std::span<const float>(untouched.parameters().span()))))
          << parameter.name;
      if (taken) continue;
      EXPECT_THAT(part(model.dense_optimizer().states()[0].values.span()), ::testing::Each(0.0f));
    }
    std::lock_guard lock(mutex);
    AddRows(untouched, &drawn);
    AddRows(model, &loaded);
  });
  EXPECT_EQ(loaded.at("b"), drawn.at("b"));
  EXPECT_NE(loaded.at("a"), drawn.at("a"));
}

TEST(Initialize, PartsAreMatchedByNameAndShape) {
  const auto same = [] {
    TrainConfig config = ConfigWith("sgd", 1, 1);
    config.model.type = "dlrm_dcnv2";
    return config;
  };
  const Earlier earlier(same());
  const auto match = [&](const TrainConfig& config, const OtherParts& others = {}) {
    PartMatch parts;
    RunRanksAsThreads(1, [&](Communicator& comm) {
      ThreadPool pool(1);
      TestModel model(config, LaterSchema(), comm, pool);
      parts = MatchParts(CheckpointReader(earlier.path), model.model().layout(),
                         model.Updated().tables(), others);
      EXPECT_EQ(parts.tables.size() + parts.other_tables.size(), model.Updated().tables().size());
      EXPECT_EQ(parts.parameters.size() + parts.other_parameters.size(),
                model.model().layout().parameters().size());
      EXPECT_EQ(parts.begin_anew.size(), parts.other_tables.size() + parts.other_parameters.size());
    });
    return parts;
  };
  PartMatch parts = match(same());
  EXPECT_THAT(parts.begin_anew, IsEmpty());
  EXPECT_THAT(parts.left, IsEmpty());
  TrainConfig config = same();
  config.numerics.column_blocks = 2;
  config.model.tables["a"].embedding_dim = 4;
  EXPECT_THAT(match(config).begin_anew,
              Contains("table 'a' has rows of 8 values there and 4 here"));
  EXPECT_THAT(match(config).tables, Contains("b"));
  config = same();
  config.model.bottom_mlp = {14};
  EXPECT_THAT(match(config).begin_anew,
              Contains("'bottom.0.weight' is [12, 3] there and [14, 3] here"));
  EXPECT_THAT(match(config).parameters, Contains("top.0.weight"));
  config = same();
  config.model.cross_layers = 3;
  EXPECT_THAT(match(config).begin_anew, Contains("'cross.2.bias' is missing there"));
  EXPECT_THAT(match(config).left, IsEmpty());
  config.model.cross_layers = 1;
  EXPECT_THAT(match(config).begin_anew, IsEmpty());
  EXPECT_THAT(match(config).left, Contains("'cross.1.bias'"));
  parts = match(same(), {.parameters = {"top.0.weight"}, .tables = {{"b", "is not it"}}});
  EXPECT_THAT(parts.begin_anew, ::testing::ElementsAre("table 'b' is not it",
                                                       "'top.0.weight' reads other columns there"));
  EXPECT_THAT(parts.other_tables, ::testing::ElementsAre("b"));
  EXPECT_THAT(parts.other_parameters, ::testing::ElementsAre("top.0.weight"));
}

}  // namespace
}  // namespace renzan
