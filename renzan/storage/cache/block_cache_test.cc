#include "renzan/storage/cache/block_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/storage/cache/block_cache_testing.h"

namespace renzan::cache_testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Error FailureOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kSoftware, "none");
}

TEST_F(BlockCacheTest, FetchesWhatIsNeededOnce) {
  const Data data = MakeData({5 * kBlock + 100, 3000, 2 * kBlock});
  const auto cache = Open(data, 7);
  EXPECT_EQ(cache->chunk_bytes(), BlockCache::kSmallChunkBytes);
  EXPECT_FALSE(cache->FitsWhole());
  std::vector<uint64_t> chunks;
  cache->AddChunks(0, kBlock - 1, kBlock + 1, &chunks);
  cache->AddChunks(0, 5 * kBlock, 5 * kBlock, &chunks);  // nothing
  cache->AddChunks(0, 5 * kBlock, 5 * kBlock + 1, &chunks);
  cache->AddChunks(1, 0, 3000, &chunks);
  cache->AddChunks(2, 2 * kBlock - 1, 2 * kBlock, &chunks);
  EXPECT_THAT(chunks, ElementsAre(0, 1, 5, 6, 8));
  Read(data, *cache, chunks);
  EXPECT_EQ(store_.reads, 5);
  Read(data, *cache, chunks);
  Read(data, *Open(data, 7), chunks);  // as another process would
  EXPECT_EQ(store_.reads, 5) << "what is there is not fetched again";
  EXPECT_EQ(Usage(), 3 * kBlock + 100 + 3000);
  EXPECT_EQ(cache->stats().needed, 10);
  EXPECT_EQ(cache->stats().missed, 5);
  EXPECT_EQ(cache->stats().fetched_bytes, Usage());
}

TEST_F(BlockCacheTest, ChunksAreLargeWhereEverythingFits) {
  const Data data = MakeData({70 * kBlock, kBlock});
  const auto cache = Open(data, 71);
  EXPECT_TRUE(cache->FitsWhole());
  EXPECT_EQ(cache->chunk_bytes(), BlockCache::kLargeChunkBytes);
  Read(data, *cache, AllChunksOf(data, *cache));
  EXPECT_EQ(store_.reads, 3);
}

// Where everything fitted before, one batch now needs no more room than in a small cache.
TEST_F(BlockCacheTest, TheLimitOfADirectoryMayBecomeSmaller) {
  const Data data = MakeData({70 * kBlock, 70 * kBlock, 70 * kBlock});
  const auto blocks = [&](const BlockCache& cache, uint64_t block) {
    std::vector<uint64_t> chunks;
    for (size_t file = 0; file < 3; ++file)
      cache.AddChunks(file, block * kBlock, (block + 1) * kBlock, &chunks);
    return chunks;
  };
  for (const uint64_t limit : {210, 16, 8}) {
    SCOPED_TRACE(fmt::format("{} blocks", limit));
    const auto cache = Open(data, limit);
    Read(data, *cache, blocks(*cache, 0));
    EXPECT_LE(Usage(), limit * kBlock);
    EXPECT_LE(DiskBytesIn(directory_), limit * kBlock);
    if (!cache->FitsWhole()) Read(data, *cache, blocks(*cache, 69));
  }
}

TEST_F(BlockCacheTest, ACorruptBlockIsAnErrorThatNamesIt) {
  Data data = MakeData({3 * kBlock, 3 * kBlock});
  const auto cache = Open(data, 5);
  std::string damaged = data.contents[1];
  damaged[2 * kBlock - 1] ^= 1;
  WriteFileAtomically(data.files[1].path, damaged);
  BlockCache::Reading reading(*cache);
  const Error error = FailureOf([&] { reading.Need(std::vector<uint64_t>{4}); });
  EXPECT_EQ(error.code(), ErrorCode::kData);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr(data.files[1].path), HasSubstr("bytes 65536 to 131071 are corrupt")));
  EXPECT_EQ(store_.reads, 2);
  EXPECT_EQ(Usage(), 0);
  EXPECT_THAT(There(), ElementsAre());
  EXPECT_FALSE(reading.WasThere());
  Read(data, *cache, {3, 5});  // the others are intact
  WriteFileAtomically(data.files[1].path, data.contents[1]);
  Read(data, *cache, {4});
}

TEST_F(BlockCacheTest, DamageOnTheWayHeals) {
  const Data data = MakeData({3 * kBlock});
  const auto cache = Open(data, 2);
  store_.after_read = [&](char* bytes) { bytes[7] ^= static_cast<char>(store_.reads == 1); };
  Read(data, *cache, {1});
  EXPECT_EQ(store_.reads, 2);
}

TEST_F(BlockCacheTest, WhatIsMissingInTheStoreIsAnError) {
  const Data data = MakeData({3 * kBlock, 2 * kBlock});
  const auto cache = Open(data, 4);
  fs::remove(data.files[0].path);
  BlockCache::Reading reading(*cache);
  const Error error = FailureOf([&] { reading.Need(std::vector<uint64_t>{0, 1}); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_THAT(error.what(), HasSubstr(data.files[0].path));
  EXPECT_EQ(Usage(), 0);
  fs::resize_file(data.files[1].path, kBlock + 7);
  EXPECT_EQ(FailureOf([&] { reading.Need(std::vector<uint64_t>{4}); }).code(), ErrorCode::kData);
  EXPECT_EQ(Usage(), 0);
}

TEST_F(BlockCacheTest, BatchesThatDoNotFitAreAnError) {
  const Data data = MakeData({5 * kBlock});
  const auto cache = Open(data, 3);
  BlockCache::Reading reading(*cache);
  const Error error = FailureOf([&] { reading.Need(std::vector<uint64_t>{0, 1, 2, 3}); });
  EXPECT_EQ(error.code(), ErrorCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("196608 bytes"), HasSubstr("needs 262144"),
                                  HasSubstr("raise data.cache.size")));
  Read(data, *cache, {0, 1, 2});
  Read(data, *cache, {2, 3, 4});
}

TEST_F(BlockCacheTest, ADirectoryThatCannotBeMadeIsAnError) {
  const Data data = MakeData({kBlock});
  WriteFileAtomically(folder_ / "file", "");
  const BlockCache::Options options{
      .directory = folder_ / "file/cache", .max_bytes = kBlock, .id = kId};
  const Error error = FailureOf([&] { BlockCache(options, data.files); });
  EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  EXPECT_THAT(error.what(), HasSubstr(folder_ / "file"));
}

TEST_F(BlockCacheTest, AReaderNoticesAnEviction) {
  const Data data = MakeData({4 * kBlock});
  const auto cache = Open(data, 2);
  const std::vector<uint64_t> first = {0, 1};
  {
    BlockCache::Reading reading(*cache);
    reading.Need(first);
    EXPECT_TRUE(reading.WasThere());
  }
  BlockCache::Reading reading(*cache);
  reading.Need(first);
  Read(data, *Open(data, 2), {3});
  EXPECT_FALSE(reading.WasThere());
  Read(data, *cache, {3, 0});
  Read(data, *cache, first);
  EXPECT_FALSE(reading.WasThere()) << "they have been away meanwhile";
}

// Compares the evictions with those of Belady's algorithm.
TEST_F(BlockCacheTest, EvictsWhatIsNeededLast) {
  constexpr uint64_t kChunks = 24, kRoom = 7;
  const Data data = MakeData({kChunks * kBlock});
  for (auto [seed, last] = TestSeeds(7); seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    fs::remove_all(directory_);
    const auto cache = Open(data, kRoom);
    std::mt19937_64 random(seed);
    std::vector<uint32_t> next_use(kChunks);
    std::iota(next_use.begin(), next_use.end(), kLater);
    std::map<uint32_t, uint64_t> there;  // chunks by next use
    for (int round = 0; round < 60; ++round) {
      if (round % 20 == 0) {
        std::shuffle(next_use.begin(), next_use.end(), random);
        std::map<uint32_t, uint64_t> now;
        for (const auto& [old, chunk] : there) now[next_use[chunk]] = chunk;
        there = now;
        for (const auto& [use, chunk] : there) cache->SetNextUse(chunk, use);
      }
      const uint64_t chunk = random() % kChunks;
      const bool is_needed = random() % 3 == 0;
      bool fits = there.contains(next_use[chunk]) || there.size() < kRoom;
      if (!fits && (is_needed || there.rbegin()->first > next_use[chunk])) {
        there.erase(std::prev(there.end()));
        fits = true;
      }
      if (fits) there[next_use[chunk]] = chunk;
      if (is_needed) {
        Read(data, *cache, {chunk});
        cache->SetNextUse(chunk, next_use[chunk]);
      } else {
        EXPECT_EQ(cache->Prefetch(chunk, next_use[chunk]), fits);
      }
      std::vector<uint64_t> expected;
      for (const auto& [use, one] : there) expected.push_back(one);
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(There(), expected) << "round " << round;
      ASSERT_EQ(Usage(), expected.size() * kBlock);
      ASSERT_EQ(DiskBytesIn(directory_), Usage());
    }
  }
}

TEST_F(BlockCacheTest, FoldersThatNobodyUsesGoFirstTheOldestFirst) {
  const Data data = MakeData({12 * kBlock}), other = MakeData({4 * kBlock}, "other");
  const std::string old_id(32, 'b'), new_id(32, 'a');
  for (const std::string& id : {new_id, old_id}) Read(other, *Open(other, 10, id), {0});
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto cache = Open(data, 10);
  Read(data, *cache, {0, 1});
  fs::last_write_time(directory_ + "/" + old_id + "/state", an_hour_ago);
  EXPECT_EQ(Usage(), 10 * kBlock);
  Read(data, *cache, {2});
  EXPECT_FALSE(fs::exists(directory_ + "/" + old_id));
  EXPECT_TRUE(fs::exists(directory_ + "/" + new_id));
  EXPECT_EQ(Usage(), 7 * kBlock);
  Read(data, *cache, {3, 4, 5});
  EXPECT_TRUE(fs::exists(directory_ + "/" + new_id));
  Read(data, *cache, {6});
  EXPECT_FALSE(fs::exists(directory_ + "/" + new_id));
  EXPECT_THAT(There(), ElementsAre(0, 1, 2, 3, 4, 5, 6)) << "nothing of its own has gone";
  EXPECT_EQ(Usage(), 7 * kBlock);
  EXPECT_EQ(DiskBytesIn(directory_), Usage());
}

// A process was killed while it removed the folder; then the dataset was used again.
TEST_F(BlockCacheTest, WhatIsLeftOfAFolderIsNotInTheWay) {
  const Data data = MakeData({12 * kBlock}), other = MakeData({4 * kBlock}, "other");
  const std::string other_id(32, 'a'), left = directory_ + "/" + other_id + ".removed/shard";
  const auto cache = Open(data, 7);
  Read(other, *Open(other, 7, other_id), {0});
  CreateDirectories(left);
  WriteFileAtomically(left + "/0.npy", std::string(kBlock, 'x'));
  Read(data, *cache, {0, 1, 2, 3});
  Read(data, *cache, {4, 5, 6});
  Read(data, *cache, {7, 8, 9});
  EXPECT_EQ(Usage(), 7 * kBlock);
  EXPECT_LE(DiskBytesIn(directory_), 7 * kBlock);
}

TEST_F(BlockCacheTest, OthersInItsDirectoryAreLeftAlone) {
  const Data data = MakeData({4 * kBlock});
  CreateDirectories(directory_ + "/photos.removed");
  WriteFileAtomically(directory_ + "/photos.removed/1.jpg", "cheese");
  Read(data, *Open(data, 2), {0, 1});
  Read(data, *Open(data, 2), {2, 3});
  EXPECT_EQ(ReadFile(directory_ + "/photos.removed/1.jpg"), "cheese");
}

TEST_F(BlockCacheTest, ChunksOfAFolderInUseGoByTheirNextUse) {
  const Data data = MakeData({8 * kBlock}), other = MakeData({8 * kBlock}, "other");
  const std::string other_id(32, 'a');
  const auto used = Open(other, 4, other_id);
  const auto cache = Open(data, 4);
  Read(other, *used, {0, 1});
  Read(data, *cache, {0, 1});
  used->SetNextUse(0, kLater);
  used->SetNextUse(1, kLater + 2);
  cache->SetNextUse(0, kLater + 1);
  cache->SetNextUse(1, kLater + 3);
  Read(data, *cache, {2, 3});
  EXPECT_THAT(There(other_id), ElementsAre(0));
  EXPECT_THAT(There(), ElementsAre(0, 2, 3));
  EXPECT_EQ(Usage(), 4 * kBlock);
  EXPECT_EQ(DiskBytesIn(directory_), Usage());
}

TEST_F(BlockCacheTest, AfterAnotherStartOfTheMachineChunksAreVerifiedAgain) {
  const Data data = MakeData({8 * kBlock});
  {
    const auto cache = Open(data, 6);
    Read(data, *cache, {0, 1, 2, 3, 4, 5});
  }
  std::vector<Entry> entries = Entries();
  for (Entry& entry : entries) entry.verified_in ^= 6;
  entries[1].next_use = BlockCache::kNever;
  WriteEntries(entries);
  const std::string path = fmt::format("{}/{}/shard/0.npy", directory_, kId);
  const int fd = ::open(path.c_str(), O_WRONLY);
  // Bytes that did not reach the disk.
  ASSERT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * kBlock + 4096, 4096),
            0);
  ASSERT_EQ(::pwrite(fd, "?", 1, 4 * kBlock), 1);
  ::close(fd);
  store_.reads = 0;
  const auto cache = Open(data, 6);
  Read(data, *cache, {0, 1, 2, 3, 4});
  EXPECT_EQ(store_.reads, 2);
  Read(data, *cache, {0, 1, 2, 3, 4});
  EXPECT_EQ(store_.reads, 2);
  EXPECT_EQ(Usage(), 6 * kBlock);
  Read(data, *cache, {7, 6});
  EXPECT_EQ(Usage(), 6 * kBlock);
}

TEST_F(BlockCacheTest, ATableThatIsDamagedIsMadeAnew) {
  const Data data = MakeData({4 * kBlock});
  Read(data, *Open(data, 3), {0, 1, 2});
  const std::string state = fmt::format("{}/{}/state", directory_, kId);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{20}, kHeaderBytes + 3}) {
    fs::resize_file(state, bytes);
    const auto cache = Open(data, 3);
    EXPECT_THAT(There(), ElementsAre());
    EXPECT_EQ(Usage(), 0);
    EXPECT_EQ(DiskBytesIn(directory_), 0);
    Read(data, *cache, {1, 2, 3});
    EXPECT_EQ(Usage(), 3 * kBlock);
  }
}

}  // namespace
}  // namespace renzan::cache_testing
