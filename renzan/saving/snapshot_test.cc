#include "renzan/saving/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "renzan/base/file/file.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/checkpoint/export.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/safetensors.h"
#include "renzan/comm/testing.h"
#include "renzan/embedding/load_tables.h"
#include "renzan/saving/testing.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

// The dirty rows of each block.
std::vector<std::vector<int32_t>> DirtyRows(TestModel& model) {
  std::vector<std::vector<int32_t>> rows;
  for (EmbeddingShard& shard : model.embeddings().shards())
    for (EmbeddingShard::Block& block : shard.blocks) rows.push_back(block.dirty.Rows());
  return rows;
}

void WithModel(
    const std::function<void(TestModel& model, const std::function<void()>& step)>& body) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TrainConfig config = SmallConfig();
    config.comm.backward = "int8";
    config.comm.error_feedback_rows = 16;
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(1);
    int64_t done = 0;
    body(model, [&] {
      model.Run(MakeSlice(model, done), done, metrics);
      ++done;
    });
  });
}

TEST(ModelSnapshot, AFullOneClearsTheDirtyRows) {
  WithModel([](TestModel& model, const std::function<void()>& step) {
    step();
    EXPECT_FALSE(DirtyRows(model)[1].empty());
    { const ModelSnapshot snapshot(model.Updated(), {}); }
    EXPECT_TRUE(DirtyRows(model)[1].empty());
    step();
    const auto since = DirtyRows(model);
    { const ModelSnapshot snapshot(model.Updated(), {.tables = {.incremental = true}}); }
    EXPECT_EQ(DirtyRows(model), since);
  });
}

TEST(ModelSnapshot, AnAbandonedOneMarksItsRowsDirtyAgain) {
  std::vector<std::vector<int32_t>> expected;
  WithModel([&](TestModel& model, const std::function<void()>& step) {
    for (int i = 0; i < 3; ++i) step();
    expected = DirtyRows(model);
  });
  WithModel([&](TestModel& model, const std::function<void()>& step) {
    step();
    ModelSnapshot snapshot(model.Updated(), {});
    step();
    snapshot.tables().Abandon();
    step();
    EXPECT_EQ(DirtyRows(model), expected);
  });
}

TEST(ModelSnapshot, EstimatesItsBytes) {
  for (const bool incremental : {false, true}) {
    for (const bool quantize : {false, true}) {
      if (quantize && !incremental) continue;
      WithModel([&](TestModel& model, const std::function<void()>& step) {
        step();
        const SnapshotOptions options{.tables = {.incremental = incremental, .quantize = quantize},
                                      .with_dense = true};
        const SnapshotBytes estimate = EstimateBytes(model.Updated(), options);
        const ModelSnapshot snapshot(model.Updated(), options);
        uint64_t bytes = 0;
        for (const TensorFile& file : snapshot.files()) bytes += file.bytes();
        // The estimate includes the padding of the dense parameters.
        const uint64_t expected = incremental ? estimate.incremental : estimate.full;
        EXPECT_LE(bytes, expected);
        EXPECT_GT(bytes, expected * 9 / 10);
      });
    }
  }
}

// Of all tensors, by key.
std::map<std::string, std::vector<float>> ValuesIn(const std::string& dir) {
  CheckpointReader reader(dir);
  std::map<std::string, std::vector<float>> values;
  for (const std::string& key : reader.keys()) {
    if (!IsFloat(reader.Info(key).dtype)) continue;
    values[key].resize(static_cast<size_t>(NumElements(reader.Info(key).shape)));
    reader.Read(key, 0, values[key]);
  }
  return values;
}

std::map<std::string, std::vector<float>> TablesIn(const std::string& dir) {
  auto values = ValuesIn(dir);
  std::erase_if(values, [](const auto& item) { return !item.first.starts_with("embedding."); });
  return values;
}

// Writes a snapshot while the model trains on. Returns how many of its files are sparse.
int64_t Write(TestModel& model, const std::string& path, const SnapshotOptions& options,
              const std::string& base, const std::function<void()>& step) {
  const uint64_t estimate = options.tables.incremental
                                ? EstimateBytes(model.Updated(), options).incremental
                                : EstimateBytes(model.Updated(), options).full;
  ModelSnapshot snapshot(model.Updated(), options);
  step();
  CheckpointManifest manifest;
  if (options.tables.incremental) {
    manifest.kind = CheckpointKind::kIncremental;
    manifest.base = {base.substr(base.rfind('/') + 1),
                     CheckpointManifest::Read(base).manifest_sha256};
  }
  CheckpointWriter writer(path);
  uint64_t bytes = 0;
  for (const TensorFile& file : snapshot.files()) {
    manifest.files.push_back(WriteCheckpointFile(writer.location(), file, {}));
    bytes += file.bytes();
  }
  EXPECT_LE(bytes, estimate);
  EXPECT_GT(bytes, estimate * 9 / 10);
  const int64_t sparse = std::count_if(manifest.files.begin(), manifest.files.end(),
                                       [](const CheckpointFile& file) { return file.sparse; });
  writer.CheckAndCommit(std::move(manifest));
  return sparse;
}

// The same model twice, one saved sparsely: checkpoints of the same steps hold the same values,
// through abandoned ones, increments, and another process that resumes.
TEST(ModelSnapshot, SparseOnesHoldTheSameModel) {
  TemporaryDirectory dir;
  const auto train = [&](const std::string& name, int64_t sparse_from_bytes) {
    const bool sparse = sparse_from_bytes == 0;
    const SnapshotOptions full{.tables = {.sparse_from_bytes = sparse_from_bytes},
                               .with_dense = true};
    SnapshotOptions increment = full;
    increment.tables.incremental = true;
    const auto path = [&](int i) { return fmt::format("{}/{}-{}", dir.path(), name, i); };
    WithModel([&](TestModel& model, const std::function<void()>& step) {
      step();
      {
        ModelSnapshot abandoned(model.Updated(), full);
        abandoned.tables().Abandon();
      }
      step();
      // Table b, of which few rows are trained in a few steps of 64 samples.
      EXPECT_EQ(Write(model, path(1), full, "", step) > 0, sparse);
      Write(model, path(2), increment, path(1), step);
      EXPECT_EQ(Write(model, path(3), full, "", step) > 0, sparse);
      Write(model, path(4), increment, path(3), step);
    });
    for (const int from : {3, 4}) {
      WithModel([&](TestModel& model, const std::function<void()>& step) {
        CheckpointReader reader(path(from));
        LoadTables(reader, &model.embeddings(), model.Updated().pool());
        Write(model, path(10 * from), full, "", step);
      });
    }
  };
  train("all", kSparseFromBytes);
  train("sparse", 0);
  for (const int i : {1, 2, 3, 4, 30, 40}) {
    const auto all = ValuesIn(fmt::format("{}/all-{}", dir.path(), i));
    EXPECT_GT(all.size(), 8u);
    EXPECT_EQ(ValuesIn(fmt::format("{}/sparse-{}", dir.path(), i)), all) << i;
  }
}

// Also of a checkpoint that holds all rows are those found that differ from their initial values.
TEST(ModelSnapshot, ARunThatSavedAllRowsCanBecomeSparse) {
  TemporaryDirectory dir;
  const SnapshotOptions full{.tables = {.sparse_from_bytes = 0}, .with_dense = true};
  SnapshotOptions all = full, increment = full;
  all.tables.sparse = false;
  increment.tables.incremental = true;
  std::vector<int32_t> trained;
  WithModel([&](TestModel& model, const std::function<void()>& step) {
    step();
    EXPECT_EQ(Write(model, dir / "all", all, "", step), 0);
    trained = DirtyRows(model)[1];
    Write(model, dir / "increment", increment, dir / "all", [] {});
  });
  for (const std::string& from : {dir / "all", dir / "increment"}) {
    WithModel([&](TestModel& model, const std::function<void()>&) {
      CheckpointReader reader(from);
      LoadTables(reader, &model.embeddings(), model.Updated().pool());
      const std::string path = from + "-sparse";
      EXPECT_GT(Write(model, path, full, "", [] {}), 0);
      EXPECT_EQ(TablesIn(path), TablesIn(from));
      const auto rows = CheckpointReader(path).FindSparseTable("embedding.b.weight");
      ASSERT_TRUE(rows);
      if (from.ends_with("increment")) {
        EXPECT_TRUE(std::ranges::includes(rows->rows, trained));
      }
    });
  }
}

// Rows of another seed are not the initial ones of this run.
TEST(ModelSnapshot, ATableOfAnotherSeedIsSavedWhole) {
  TemporaryDirectory dir;
  const SnapshotOptions full{.tables = {.sparse_from_bytes = 0}, .with_dense = true};
  WithModel([&](TestModel& model, const std::function<void()>& step) {
    step();
    EXPECT_GT(Write(model, dir / "1", full, "", step), 0);
  });
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TrainConfig config = SmallConfig();
    config.seed += 1;
    config.comm.backward = "int8";
    config.comm.error_feedback_rows = 16;
    TestModel model(config, TestSchema(), comm, pool);
    CheckpointReader reader(dir / "1");
    LoadTables(reader, &model.embeddings(), pool);
    EXPECT_EQ(Write(model, dir / "2", full, "", [] {}), 0);
    EXPECT_EQ(TablesIn(dir / "2"), TablesIn(dir / "1"));
  });
}

// Adagrad with blocks of one column each.
TrainConfig ColumnsConfig() {
  TrainConfig config = CheckpointingConfig();
  config.model.embedding_dim = 4;
  config.numerics.column_blocks = 4;
  config.optimizer.sparse.type = "adagrad";
  return config;
}

// The checkpoint `from` as written by earlier builds, which saved such a block's state as [rows].
void WriteAsEarlierBuild(const std::string& from, const std::string& to) {
  CheckpointReader reader(from);
  CheckpointManifest manifest = reader.manifest();
  CheckpointWriter writer(to);
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int64_t>> integers;
  std::vector<TensorSource> tensors;
  floats.reserve(reader.keys().size());
  integers.reserve(reader.keys().size());
  for (const std::string& key : reader.keys()) {
    std::vector<int64_t> shape = reader.Info(key).shape;
    if (reader.Info(key).dtype == DType::kI64) {
      integers.push_back(reader.ReadI64(key));
      tensors.push_back(SourceOf(key, shape, integers.back()));
      continue;
    }
    floats.emplace_back(static_cast<size_t>(NumElements(shape)));
    reader.Read(key, 0, floats.back());
    if (key.starts_with("embedding.") && key.ends_with("/adagrad")) {
      ASSERT_EQ(shape.size(), 2u) << key;
      shape.pop_back();
    }
    tensors.push_back(SourceOf(key, shape, floats.back()));
  }
  manifest.files = {WriteCheckpointFile(writer.location(), "all.safetensors", tensors, {})};
  writer.Commit(manifest);
}

// Of all blocks side by side, as the model has it: the state of each table [rows, dim].
std::vector<float> StateOf(TestModel& model, const std::string& table, int64_t rows) {
  const int64_t dim = model.embeddings().map().tables()[0].embedding_dim;
  std::vector<float> whole(static_cast<size_t>(rows * dim));
  for (EmbeddingShard& shard : model.embeddings().shards()) {
    if (shard.table.name != table) continue;
    std::vector<float> column(static_cast<size_t>(rows));
    shard.store->CopyState(0, rows, reinterpret_cast<std::byte*>(column.data()));
    for (size_t r = 0; r < column.size(); ++r)
      whole[r * static_cast<size_t>(dim) + static_cast<size_t>(shard.shard.column_block)] =
          column[r];
  }
  return whole;
}

TEST(ModelSnapshot, SavesAdagradsStateOfEveryColumn) {
  TemporaryDirectory dir;
  const TrainConfig config = ColumnsConfig();
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir / "checkpoints", SystemClock());
    trainer.TrainTo(3);
    trainer.checkpointer->SaveModel(dir / "model", 3);
    CheckpointReader reader(dir / "model");
    ExportModel(reader, dir / "model.safetensors");
    const SafetensorsReader file(dir / "model.safetensors");
    const auto* state = file.Find("embedding.b.weight/adagrad");
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->info.shape, (std::vector<int64_t>{1000, 4}));
    EXPECT_EQ(std::vector<float>(state->f32().begin(), state->f32().end()),
              StateOf(trainer.model, "b", 1000));
  });
}

TEST(ModelSnapshot, GoesOnFromWhatAnEarlierBuildSaved) {
  TemporaryDirectory dir;
  TrainConfig config = ColumnsConfig();
  config.checkpoint.keep = 10;
  const std::string now = dir / "now", earlier = dir / "earlier";
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, now, SystemClock());
    trainer.TrainTo(3);
    trainer.StopHere();
  });
  CreateDirectories(earlier);
  WriteAsEarlierBuild(now + "/" + CheckpointName(3), earlier + "/" + CheckpointName(3));
  // The increment that is written now has another shape than its base.
  for (const int64_t end : {5, 7}) {
    RunRanksAsThreads(1, [&](Communicator& comm) {
      Trainer trainer(comm, config, earlier, SystemClock());
      EXPECT_EQ(trainer.step, end - 2);
      EXPECT_EQ(DigestsOf(trainer.model), ReferenceDigests(config, end - 2));
      trainer.TrainTo(end);
      trainer.StopHere();
      EXPECT_EQ(CheckpointReader(earlier + "/" + CheckpointName(end)).kind(),
                CheckpointKind::kIncremental);
    });
  }
}

}  // namespace
}  // namespace renzan
