#include "renzan/saving/snapshot.h"

#include <gtest/gtest.h>

#include "renzan/comm/testing.h"
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
    std::vector<BinaryMetrics> metrics(1);
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
    { const ModelSnapshot snapshot(model.Updated(), {.incremental = true}); }
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
    snapshot.Abandon();
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
        const SnapshotOptions options{
            .incremental = incremental, .quantize = quantize, .with_dense = true};
        const SnapshotBytes estimate = EstimateBytes(model.Updated(), options);
        const ModelSnapshot snapshot(model.Updated(), options);
        uint64_t bytes = 0;
        for (const ModelSnapshot::File& file : snapshot.files()) bytes += file.bytes();
        // The estimate includes the padding of the dense parameters.
        const uint64_t expected = incremental ? estimate.incremental : estimate.full;
        EXPECT_LE(bytes, expected);
        EXPECT_GT(bytes, expected * 9 / 10);
      });
    }
  }
}

}  // namespace
}  // namespace renzan
