#include "renzan/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dataset/dataset_cache.h"
#include "renzan/data/sample_order.h"

// A local file plays the store.

namespace renzan {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr int64_t kRows = 16 * 45 + 5;
constexpr ShuffleOptions kShuffle{.block_rows = 16, .window_blocks = 4};
constexpr int64_t kBatch = 16;  // four steps a window
constexpr double kPatienceSeconds = 20;

// A dataset of one column.
class Column {
 public:
  // Its rows begin at `data_offset`; a block of them is 16 * `row_bytes` long.
  Column(uint64_t row_bytes, uint64_t data_offset, uint64_t max_blocks)
      : row_bytes_(row_bytes), data_offset_(data_offset), path_(folder_ / "store.npy") {
    std::string content(data_offset + kRows * row_bytes, '\0');
    for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i / 7 + i);
    WriteFileAtomically(path_, content);
    std::vector<uint64_t> checksums;
    for (size_t at = 0; at < content.size(); at += kBlock)
      checksums.push_back(Xxh3OfBlock(&content[at], std::min<size_t>(kBlock, content.size() - at)));
    cache_ = std::make_unique<DatasetCache>(BlockCache::Options{
        .directory = folder_ / "cache", .max_bytes = max_blocks * kBlock, .id = "column"});
    const size_t file = cache_->AddFile({path_, "cached.npy", content.size(), checksums});
    cache_->Open();
    cache_->AddShard({.rows = kRows, .columns = {{file, data_offset, row_bytes}}});
    EXPECT_FALSE(cache_->cache().FitsWhole());
  }

  DatasetCache& cache() { return *cache_; }
  const std::string& path() const { return path_; }

  std::vector<uint64_t> ChunksOf(int64_t row) const {
    const uint64_t begin = data_offset_ + static_cast<uint64_t>(row) * row_bytes_;
    std::vector<uint64_t> chunks;
    for (uint64_t i = begin / kBlock; i <= (begin + row_bytes_ - 1) / kBlock; ++i)
      chunks.push_back(i);
    return chunks;
  }

  // When each chunk that is there is needed next.
  std::map<uint64_t, uint32_t> NextUses() const {
    constexpr size_t kHeaderBytes = 64, kEntryBytes = sizeof(ChunkTable::Chunk);
    const std::string state = ReadFile(folder_ / "cache/column/state");
    std::map<uint64_t, uint32_t> uses;
    for (size_t at = kHeaderBytes; at < state.size(); at += kEntryBytes) {
      uint32_t version, next_use;
      std::memcpy(&version, &state[at], sizeof version);
      std::memcpy(&next_use, &state[at + sizeof version], sizeof next_use);
      if (version % 2 == 1) uses[(at - kHeaderBytes) / kEntryBytes] = next_use;
    }
    return uses;
  }

  void Read(const std::vector<int64_t>& rows) {
    cache_->ReadRows(rows, [] {});
  }

 private:
  const uint64_t row_bytes_, data_offset_;
  TemporaryDirectory folder_;
  const std::string path_;
  std::unique_ptr<DatasetCache> cache_;
};

struct Training {
  BatchLoaderOptions options;

  Training(bool shuffled, int64_t row_begin, double epochs, int64_t first_step = 0) {
    options = {.seed = 5,
               .row_begin = row_begin,
               .row_end = kRows,
               .global_batch = kBatch,
               .slice_end = kBatch,
               .first_step = first_step};
    options.shuffle = kShuffle;
    options.shuffle.enabled = shuffled;
    options.num_steps =
        static_cast<int64_t>(epochs * static_cast<double>(steps_per_epoch())) - first_step;
  }
  int64_t steps_per_epoch() const {
    return StepsPerEpoch(options.row_end - options.row_begin, kBatch);
  }
  SampleOrder OrderOf(int64_t epoch) const {
    return SampleOrder(options.seed, epoch, options.row_begin, options.row_end, options.shuffle);
  }
  // Windows of all epochs, numbered through.
  int64_t WindowOf(int64_t step) const {
    const SampleOrder order = OrderOf(0);
    return step / steps_per_epoch() * order.num_windows() +
           step % steps_per_epoch() * kBatch / order.window_rows();
  }
  // Including rows that do not fill a batch at the end of an epoch.
  std::vector<int64_t> RowsOfWindow(int64_t window) const {
    const int64_t windows = OrderOf(0).num_windows();
    const SampleOrder order = OrderOf(window / windows);
    const int64_t begin = window % windows * order.window_rows();
    std::vector<int64_t> rows;
    for (int64_t i = begin; i < std::min(begin + order.window_rows(), order.num_rows()); ++i)
      rows.push_back(order.Row(i));
    return rows;
  }
  std::vector<int64_t> RowsOf(int64_t step) const {
    const SampleOrder order = OrderOf(step / steps_per_epoch());
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < kBatch; ++i)
      rows.push_back(order.Row(step % steps_per_epoch() * kBatch + i));
    return rows;
  }
  int64_t end_step() const { return options.first_step + options.num_steps; }
};

template <typename Condition>
bool BecomesTrue(const Condition& condition) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatienceSeconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Reads all steps, each window once all of it is there, and expects no miss.
void ExpectNothingMissed(Column& column, const Training& training) {
  Prefetcher prefetcher(column.cache(), training.options);
  for (int64_t step = training.options.first_step; step < training.end_step(); ++step) {
    prefetcher.AtStep(step);
    std::set<uint64_t> needed;  // up to the end of the step's window
    for (int64_t s = step;
         s < training.end_step() && training.WindowOf(s) == training.WindowOf(step); ++s)
      for (const int64_t row : training.RowsOf(s))
        for (const uint64_t chunk : column.ChunksOf(row)) needed.insert(chunk);
    ASSERT_TRUE(BecomesTrue([&] {
      const std::map<uint64_t, uint32_t> uses = column.NextUses();
      return std::all_of(needed.begin(), needed.end(),
                         [&](uint64_t chunk) { return uses.contains(chunk); });
    })) << "the window of step "
        << step;
    column.Read(training.RowsOf(step));
  }
  EXPECT_EQ(column.cache().cache().stats().missed, 0);
  EXPECT_GT(column.cache().cache().stats().needed, 0);
}

TEST(Prefetcher, WindowsAreThereBeforeTheyAreRead) {
  for (const bool shuffled : {true, false}) {
    for (const int64_t row_begin : {0, 7}) {
      for (const int64_t first_step : {0, 30}) {
        SCOPED_TRACE(::testing::Message() << shuffled << " " << row_begin << " " << first_step);
        Column wide(4096, 128, 20);  // of 46 blocks
        ExpectNothingMissed(wide, Training(shuffled, row_begin, 2.4, first_step));
      }
    }
  }
  Column narrow(512, 128, 5);  // eight blocks a chunk, six chunks
  ExpectNothingMissed(narrow, Training(false, 7, 2));
}

// What the next steps need, those that begin while one window's worth of samples is read, is there
// before they begin, also in the next epoch. Nothing else is fetched, because it would take the
// room of what is needed in between.
TEST(Prefetcher, WhatIsFetchedAheadIsReadSoon) {
  Column column(4096, 0, 20);  // of 46 blocks, five windows
  const Training training(true, 0, 2.4);
  constexpr int64_t kStepsAhead = 4;
  Prefetcher prefetcher(column.cache(), training.options);
  std::set<uint64_t> there;
  for (int64_t step = 0; step < training.end_step(); ++step) {
    prefetcher.AtStep(step);
    std::set<uint64_t> expected;
    const int64_t last = std::min(step + kStepsAhead, training.end_step() - 1);
    for (int64_t window = training.WindowOf(step); window <= training.WindowOf(last); ++window)
      for (const int64_t row : training.RowsOfWindow(window))
        for (const uint64_t chunk : column.ChunksOf(row)) expected.insert(chunk);
    std::set<uint64_t> found;
    const auto look = [&] {
      found.clear();
      for (const auto& [chunk, use] : column.NextUses()) found.insert(chunk);
    };
    ASSERT_TRUE(BecomesTrue([&] {
      look();
      return std::includes(found.begin(), found.end(), expected.begin(), expected.end());
    })) << "at step "
        << step;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // during which it could fetch more
    look();
    for (const uint64_t chunk : found)
      EXPECT_TRUE(there.contains(chunk) || expected.contains(chunk))
          << "chunk " << chunk << " at step " << step;
    there = found;
  }
}

// In every window, for all cached chunks, compared with the rows of all later windows.
void ExpectNextUses(Column& column, const Training& training) {
  const auto before = static_cast<uint32_t>(SystemClock().UnixSeconds());
  Prefetcher prefetcher(column.cache(), training.options);
  const auto after = static_cast<uint32_t>(SystemClock().UnixSeconds());
  const int64_t last_window = training.WindowOf(training.end_step() - 1);
  for (int64_t step = training.options.first_step; step < training.end_step(); ++step) {
    prefetcher.AtStep(step);
    const int64_t now = training.WindowOf(step);
    if (step > training.options.first_step && training.WindowOf(step - 1) == now) continue;
    std::map<uint64_t, int64_t> windows;  // that need each chunk next
    for (int64_t window = last_window; window >= now; --window)
      for (const int64_t row : training.RowsOfWindow(window))
        for (const uint64_t chunk : column.ChunksOf(row)) windows[chunk] = window;
    std::string wrong;
    const bool are_right = BecomesTrue([&] {
      for (uint32_t started = before; started <= after; ++started) {
        wrong.clear();
        for (const auto& [chunk, use] : column.NextUses()) {
          const auto found = windows.find(chunk);
          const uint32_t expected = found == windows.end()
                                        ? BlockCache::kNever
                                        : started + static_cast<uint32_t>(found->second) * 10;
          if (use != expected)
            wrong += fmt::format("chunk {}: {:+} s\n", chunk, int64_t{use} - int64_t{expected});
        }
        if (wrong.empty()) return true;
      }
      return false;
    });
    ASSERT_TRUE(are_right) << "in window " << now << ":\n" << wrong;
  }
}

TEST(Prefetcher, TheNextUseOfAChunkIsThatOfItsBlock) {
  for (const bool shuffled : {true, false}) {
    SCOPED_TRACE(shuffled);
    Column column(4096, 0, 20);
    ExpectNextUses(column, Training(shuffled, 0, 2.4));
  }
}

TEST(Prefetcher, TheNextUseOfAChunkIsTheFirstOfItsBlocks) {
  for (const bool shuffled : {true, false}) {
    SCOPED_TRACE(shuffled);
    Column column(1024, 128, 10);  // four blocks a chunk and more, 12 chunks
    ExpectNextUses(column, Training(shuffled, 7, 2.4));
  }
}

// The reader hits the same error and reports it.
TEST(Prefetcher, AStoreThatFailsIsTheReadersAffair) {
  Column column(4096, 128, 20);
  WriteFileAtomically(column.path(), "short");
  const Training training(true, 0, 1);
  Prefetcher prefetcher(column.cache(), training.options);
  prefetcher.AtStep(0);
  prefetcher.AtStep(training.end_step() - 1);
  try {
    column.Read(training.RowsOf(0));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(column.path()));
  }
}

}  // namespace
}  // namespace renzan
