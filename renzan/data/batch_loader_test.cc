#include "renzan/data/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {
namespace {

// The id of row r is r, so a batch shows which rows it contains.
void WriteNumberedRows(const std::string& path, int rows) {
  DatasetWriter writer(path, {"y", {"x"}, {{"row", rows, false}}}, {.shard_rows = 37});
  for (int r = 0; r < rows; ++r) {
    const float dense[] = {1};
    const int64_t ids[] = {r};
    writer.Append(0, dense, ids);
  }
  writer.Finish();
}

BatchLoaderOptions OptionsFor(int64_t rows, int64_t batch) {
  return {.seed = 5, .row_end = rows, .global_batch = batch, .slice_end = batch};
}

std::vector<int64_t> Take(BatchLoader& loader, int64_t steps) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < steps; ++s) {
    const Batch& batch = loader.Next();
    rows.insert(rows.end(), batch.categorical[0].values.begin(), batch.categorical[0].values.end());
  }
  return rows;
}

TEST(BatchLoader, EpochsCoverTheRowsAndDropTheRemainder) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 100);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(100, 8);
  EXPECT_EQ(StepsPerEpoch(100, 8), 12);
  options.num_steps = 24;
  BatchLoader loader(dataset, options);
  std::vector<int64_t> first = Take(loader, 12), second = Take(loader, 12);
  EXPECT_NE(first, second);
  for (std::vector<int64_t>* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    EXPECT_EQ(std::unique(epoch->begin(), epoch->end()), epoch->end());
    EXPECT_EQ(epoch->size(), 96u);
  }
}

TEST(BatchLoader, StepsAndSlicesAreAPureFunction) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 100);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(90, 8);
  options.row_begin = 3;
  options.num_steps = 30;
  BatchLoader whole(dataset, options);
  std::vector<std::vector<int64_t>> steps;
  for (int i = 0; i < 30; ++i) steps.push_back(Take(whole, 1));

  // Resumed at step 17 by a worker that owns samples [2, 5) of every batch.
  options.first_step = 17;
  options.num_steps = 13;
  options.slice_begin = 2;
  options.slice_end = 5;
  BatchLoader resumed(dataset, options);
  for (size_t s = 17; s < 30; ++s)
    EXPECT_EQ(Take(resumed, 1), (std::vector<int64_t>(steps[s].begin() + 2, steps[s].begin() + 5)));
}

TEST(BatchLoader, ReadersNeverChangeTheOrder) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 100);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(90, 8);
  options.num_steps = 200;
  BatchLoader one(dataset, options);
  const std::vector<int64_t> expected = Take(one, 200);
  for (const int readers : {2, 3, 16}) {
    options.readers = readers;
    BatchLoader loader(dataset, options);
    EXPECT_EQ(Take(loader, 200), expected) << readers;
  }
}

TEST(BatchLoader, ABatchStaysUntilTheCallAfterTheNextOne) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 100);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(100, 10);
  options.num_steps = 50;
  options.readers = 4;
  BatchLoader loader(dataset, options);
  const Batch* last = &loader.Next();
  for (int step = 1; step < 50; ++step) {
    const std::vector<int64_t> before = last->categorical[0].values;
    const Batch* const next = &loader.Next();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(last->categorical[0].values, before);
    last = next;
  }
}

TEST(BatchLoader, WithoutShufflingRowsComeInOrder) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 20);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(20, 5);
  options.num_steps = 2;
  options.shuffle.enabled = false;
  BatchLoader loader(dataset, options);
  EXPECT_THAT(Take(loader, 2), ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(BatchLoader, ErrorsArriveWithTheirBatch) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 20);
  const std::string ids = dir / "d/shard-00000/ids.npy";
  std::string bytes = ReadFile(ids);
  const int32_t bad = 77;
  std::memcpy(bytes.data() + kNpyHeaderBytes + 7 * sizeof bad, &bad, sizeof bad);
  WriteFileAtomically(ids, bytes);
  const Dataset dataset(dir / "d", {.verify_blocks = false});
  BatchLoaderOptions options = OptionsFor(20, 5);
  options.num_steps = 4;
  options.shuffle.enabled = false;
  for (const int readers : {1, 3}) {
    options.readers = readers;
    BatchLoader loader(dataset, options);
    loader.Next();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        loader.Next();
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
        EXPECT_THAT(error.what(), ::testing::HasSubstr("has id 77"));
      }
    }
  }
}

TEST(BatchLoader, StopsWhileBatchesAreUnread) {
  TemporaryDirectory dir;
  WriteNumberedRows(dir / "d", 100);
  const Dataset dataset(dir / "d");
  BatchLoaderOptions options = OptionsFor(100, 10);
  options.num_steps = 1'000'000'000;
  options.readers = 3;
  { BatchLoader loader(dataset, options); }
  BatchLoader loader(dataset, options);
  loader.Next();
}

TEST(BatchLoader, TooFewRowsForABatch) { EXPECT_THROW(StepsPerEpoch(7, 8), Error); }

}  // namespace
}  // namespace renzan
