#include "renzan/storage/cache/block_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/random_testing.h"
#include "renzan/base/xxhash.h"

// Files of this machine play the store.

namespace renzan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr uint64_t kHeaderBytes = 64;  // of a table
constexpr uint32_t kLater = 2000000000;
constexpr const char* kId = "0123456789abcdef0123456789abcdef";

struct Data {
  std::vector<BlockCache::File> files;
  std::vector<std::string> contents;
};

std::string RandomText(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text((bytes + 7) / 8 * 8, '\0');
  for (size_t i = 0; i < text.size(); i += 8) {
    const uint64_t word = random() | 1;  // never 0, so that no data looks like a hole
    std::memcpy(&text[i], &word, sizeof word);
  }
  text.resize(bytes);
  return text;
}

uint64_t DiskBytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;  // a folder may be removed meanwhile
  for (fs::recursive_directory_iterator i(directory, error), end; !error && i != end;
       i.increment(error)) {
    struct stat info {};
    if (i->path().extension() == ".npy" && ::stat(i->path().c_str(), &info) == 0)
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

// The reads of the store, which tests count, delay and damage.
class Store : public FileSystem {
 public:
  ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                 uint64_t offset) override {
    if (!path.starts_with(folder)) return FileSystem::ReadAt(fd, path, data, bytes, offset);
    ++reads;
    if (before_read) before_read(offset);
    const ssize_t count = FileSystem::ReadAt(fd, path, data, bytes, offset);
    if (after_read) after_read(static_cast<char*>(data));
    return count;
  }

  std::string folder;
  std::atomic<int> reads{0};
  std::function<void(uint64_t offset)> before_read;
  std::function<void(char* data)> after_read;
};

class BlockCacheTest : public ::testing::Test {
 protected:
  BlockCacheTest() : scoped_(store_) { store_.folder = folder_ / "store/"; }

  // Files of these sizes, in bytes.
  Data MakeData(const std::vector<uint64_t>& sizes, const std::string& name = "data") {
    Data data;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string file = fmt::format("shard/{}.npy", i);
      const std::string path = store_.folder + name + "/" + file;
      const std::string text = RandomText(sizes[i], std::hash<std::string>()(name) + i);
      CreateDirectories(ParentDirectory(path));
      WriteFileAtomically(path, text);
      std::vector<uint64_t> checksums;
      for (size_t at = 0; at < text.size(); at += kBlock)
        checksums.push_back(Xxh3OfBlock(&text[at], std::min<size_t>(kBlock, text.size() - at)));
      data.files.push_back({path, file, sizes[i], checksums});
      data.contents.push_back(text);
    }
    return data;
  }

  BlockCache::Options OptionsOf(uint64_t max_blocks, const std::string& id = kId) const {
    return {.directory = directory_, .max_bytes = max_blocks * kBlock, .id = id};
  }
  std::unique_ptr<BlockCache> Open(const Data& data, uint64_t max_blocks,
                                   const std::string& id = kId) const {
    return std::make_unique<BlockCache>(OptionsOf(max_blocks, id), data.files);
  }

  uint64_t Usage() const {
    uint64_t bytes = 0;
    const std::string text = ReadFile(directory_ + "/usage");
    EXPECT_EQ(text.size(), sizeof bytes);
    std::memcpy(&bytes, text.data(), sizeof bytes);
    return bytes;
  }

  struct Entry {
    uint32_t version, next_use, verified_in;
    bool is_there() const { return version % 2 == 1; }
  };
  static_assert(sizeof(Entry) == sizeof(ChunkTable::Chunk));
  std::vector<Entry> Entries(const std::string& id = kId) const {
    const std::string text = ReadFile(directory_ + "/" + id + "/state");
    std::vector<Entry> entries((text.size() - kHeaderBytes) / sizeof(Entry));
    std::memcpy(entries.data(), text.data() + kHeaderBytes, entries.size() * sizeof(Entry));
    return entries;
  }
  void WriteEntries(const std::vector<Entry>& entries) const {
    const int fd = ::open((directory_ + "/" + kId + "/state").c_str(), O_WRONLY);
    const auto bytes = static_cast<ssize_t>(entries.size() * sizeof(Entry));
    EXPECT_EQ(::pwrite(fd, entries.data(), entries.size() * sizeof(Entry), kHeaderBytes), bytes);
    ::close(fd);
  }
  std::vector<uint64_t> There(const std::string& id = kId) const {
    std::vector<uint64_t> there;
    const std::vector<Entry> entries = Entries(id);
    for (uint64_t i = 0; i < entries.size(); ++i)
      if (entries[i].is_there()) there.push_back(i);
    return there;
  }
  // The bytes that the tables report as present.
  static uint64_t BytesThere(const BlockCache& cache, const std::vector<uint64_t>& chunks) {
    uint64_t bytes = 0;
    for (const uint64_t chunk : chunks) {
      const BlockCache::Place place = cache.PlaceOf(chunk);
      bytes += place.end - place.begin;
    }
    return bytes;
  }

  TemporaryDirectory folder_;
  const std::string directory_ = folder_ / "cache";
  Store store_;
  ScopedFileSystem scoped_;
};

// Whether the chunks, read through maps, hold what the store has.
bool AreRight(const Data& data, const BlockCache& cache, const std::vector<uint64_t>& chunks) {
  return std::all_of(chunks.begin(), chunks.end(), [&](uint64_t chunk) {
    const BlockCache::Place place = cache.PlaceOf(chunk);
    const MappedFile map(cache.LocalPath(place.file));
    return map.size() == data.contents[place.file].size() &&
           std::memcmp(map.bytes().data() + place.begin, &data.contents[place.file][place.begin],
                       place.end - place.begin) == 0;
  });
}

// Reads as a reader does.
void Read(const Data& data, BlockCache& cache, const std::vector<uint64_t>& chunks) {
  BlockCache::Reading reading(cache);
  bool right;
  do {
    reading.Need(chunks);
    right = AreRight(data, cache, chunks);
  } while (!reading.WasThere());
  EXPECT_TRUE(right);
}

std::vector<uint64_t> AllChunksOf(const Data& data, const BlockCache& cache) {
  std::vector<uint64_t> chunks;
  for (size_t file = 0; file < data.files.size(); ++file)
    cache.AddChunks(file, 0, data.files[file].bytes, &chunks);
  return chunks;
}

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

// --- Several threads and processes.

// A chunk that is being fetched now can be evicted a moment later.
TEST_F(BlockCacheTest, WhatIsNeededWaitsForWhatIsBeingFetched) {
  const Data data = MakeData({5 * kBlock});
  const auto cache = Open(data, 3);
  std::atomic<bool> has_begun{false}, may_end{false};
  store_.before_read = [&](uint64_t offset) {
    if (offset != 4 * kBlock) return;
    has_begun = true;
    has_begun.notify_all();
    may_end.wait(false);
  };
  std::jthread ahead([&] { cache->Prefetch(4, kLater); });
  has_begun.wait(false);
  std::atomic<bool> has_read{false};
  std::jthread ends([&] {
    while (store_.reads < 3 && !has_read) std::this_thread::yield();  // two of the three are there
    may_end = true;
    may_end.notify_all();
  });
  EXPECT_NO_THROW(Read(data, *cache, {0, 1, 2}));
  has_read = true;
}

// Reads and prefetches at random, with two chunks needed at a time by each of `threads`.
bool Hammer(const Data& data, const BlockCache::Options& options, uint64_t seed, int threads,
            int rounds) {
  BlockCache cache(options, data.files);
  const std::vector<uint64_t> all = AllChunksOf(data, cache);
  std::atomic<bool> right{true};
  const auto work = [&](int thread) {
    std::mt19937_64 random(seed * 100 + static_cast<uint64_t>(thread));
    const auto any_use = [&] { return kLater + static_cast<uint32_t>(random() % 100); };
    for (int round = 0; round < rounds && right; ++round) {
      const std::vector<uint64_t> chunks = {all[random() % all.size()], all[random() % all.size()]};
      std::optional<BlockCache::Reading> reading(cache);
      bool same;
      do {
        reading->Need(chunks);
        same = AreRight(data, cache, chunks);
      } while (!reading->WasThere());
      if (!same) right = false;
      reading.reset();
      cache.SetNextUse(chunks[0], any_use());
      cache.Prefetch(all[random() % all.size()], any_use());
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 0; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      try {
        work(thread);
      } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        right = false;
      }
    });
  }
  others.clear();
  return right;
}

pid_t Start(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    ::_exit(body() ? 0 : 1);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    ::_exit(2);
  }
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

int StatusOf(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

TEST_F(BlockCacheTest, ThreadsAndProcessesShareASmallCache) {
  constexpr uint64_t kRoom = 30;  // three processes, three threads: two needed and one ahead each
  const Data data = MakeData({20 * kBlock + 5, 3 * kBlock, 30 * kBlock - 5});
  const Data other = MakeData({33 * kBlock}, "other");
  std::vector<pid_t> processes;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    processes.push_back(Start([&] {
      return Hammer(seed == 3 ? other : data,
                    OptionsOf(kRoom, seed == 3 ? std::string(32, 'a') : kId), seed, 3, 300);
    }));
  const auto watcher = Open(data, kRoom);
  uint64_t most = 0;
  while (!std::all_of(processes.begin(), processes.end(), HasEnded)) {
    most = std::max(most, DiskBytesIn(directory_));
    EXPECT_LE(Usage(), kRoom * kBlock);
  }
  for (const pid_t pid : processes) EXPECT_EQ(StatusOf(pid), 0);
  // Some chunks move from one file to another while their sizes are summed.
  EXPECT_LE(most, kRoom * kBlock * 3 / 2);
  EXPECT_GE(most, kRoom * kBlock * 3 / 4) << "it was not small";
  // The process that needed it may have ended before the others, which then needed its room.
  const std::string id(32, 'a');
  const bool is_left = FileExists(fmt::format("{}/{}/state", directory_, id));
  EXPECT_EQ(Usage(), BytesThere(*watcher, There()) + (is_left ? kBlock * There(id).size() : 0));
}

TEST_F(BlockCacheTest, ProcessesThatAreKilledLeaveAUsableCache) {
  constexpr uint64_t kRoom = 12;
  const Data data = MakeData({20 * kBlock + 5, 3 * kBlock, 10 * kBlock - 5});
  for (auto [seed, last] = TestSeeds(14); seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const pid_t pid = Start([&] { return Hammer(data, OptionsOf(kRoom), seed, 3, 1 << 30); });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 40000));
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(StatusOf(pid)));
    const auto cache = Open(data, kRoom);
    EXPECT_EQ(Usage(), BytesThere(*cache, There()));
    EXPECT_LE(DiskBytesIn(directory_), kRoom * kBlock + 3 * 4096);
    // All of the room is available again, whatever was needed or being fetched at the kill.
    std::vector<uint64_t> chunks = AllChunksOf(data, *cache);
    std::shuffle(chunks.begin(), chunks.end(), random);
    chunks.resize(kRoom);
    Read(data, *cache, chunks);
    for (const uint64_t chunk : AllChunksOf(data, *cache)) Read(data, *cache, {chunk});
    EXPECT_LE(DiskBytesIn(directory_), kRoom * kBlock + 3 * 4096);
  }
}

// Also while other processes keep running.
TEST_F(BlockCacheTest, NobodyMissesWhatADeadProcessNeeded) {
  const Data data = MakeData({9 * kBlock});
  const auto cache = Open(data, 4);
  const pid_t pid = Start([&] {
    const auto own = Open(data, 4);
    BlockCache::Reading reading(*own);
    reading.Need(std::vector<uint64_t>{0, 1, 2});
    return ::kill(::getpid(), SIGKILL) == 0;
  });
  ASSERT_TRUE(WIFSIGNALED(StatusOf(pid)));
  EXPECT_NO_THROW(Read(data, *cache, {5, 6, 7, 8}));
}

// Each needs two thirds of the room at once.
TEST_F(BlockCacheTest, ProcessesThatNeedTooMuchTogetherTakeTurns) {
  constexpr uint64_t kRoom = 24, kNeeded = 16;
  constexpr int kMostAttempts = 30;
  const Data data = MakeData({60 * kBlock});
  const auto watcher = Open(data, kRoom);
  std::vector<pid_t> processes;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    processes.push_back(Start([&] {
      std::mt19937_64 random(seed);
      const auto cache = Open(data, kRoom);
      std::vector<uint64_t> chunks = AllChunksOf(data, *cache);
      for (int round = 0; round < 30; ++round) {
        std::shuffle(chunks.begin(), chunks.end(), random);
        const auto needed = std::span(chunks).first(kNeeded);
        BlockCache::Reading reading(*cache);
        int attempts = 0;
        bool right;
        do {
          if (++attempts > kMostAttempts) return false;
          reading.Need(needed);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          right = AreRight(data, *cache, {needed.begin(), needed.end()});
        } while (!reading.WasThere());
        if (!right) return false;
      }
      return true;
    }));
  for (const pid_t pid : processes) EXPECT_EQ(StatusOf(pid), 0);
  EXPECT_LE(Usage(), kRoom * kBlock);
}

// Folders are removed, created again, and created with smaller chunks, while others look for chunks
// to evict.
TEST_F(BlockCacheTest, FoldersComeAndGo) {
  constexpr uint64_t kRoom = 24;
  const Data data = MakeData({40 * kBlock});
  const Data other = MakeData({30 * kBlock}, "other");
  const auto watcher = Open(data, kRoom);
  std::vector<pid_t> processes;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    processes.push_back(Start([&, seed] { return Hammer(data, OptionsOf(kRoom), seed, 2, 1000); }));
    processes.push_back(Start([&, seed] {
      std::mt19937_64 random(seed);
      for (int round = 0; round < 1000; ++round) {
        const bool fits = random() % 2 == 0;  // then its chunks are large
        const auto cache = Open(other, fits ? 40 : kRoom, std::string(32, 'b'));
        const std::vector<uint64_t> chunks = AllChunksOf(other, *cache);
        Read(other, *cache, {chunks[random() % chunks.size()]});
      }
      return true;
    }));
  }
  for (const pid_t pid : processes) EXPECT_EQ(StatusOf(pid), 0);
}

// The state left by a process killed after it wrote a chunk, or before it freed one.
TEST_F(BlockCacheTest, BytesThatAreNotCountedAreFreed) {
  const Data data = MakeData({9 * kBlock});
  Read(data, *Open(data, 4), {0, 1, 2, 3});
  const int fd =
      ::open(fmt::format("{}/{}/shard/0.npy", directory_, kId).c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(fd, &data.contents[0][5 * kBlock], 4 * kBlock, 5 * kBlock),
            static_cast<ssize_t>(4 * kBlock));
  ::close(fd);
  const auto cache = Open(data, 4);
  Read(data, *cache, {4});
  EXPECT_EQ(Usage(), 4 * kBlock);
  EXPECT_EQ(DiskBytesIn(directory_), Usage());
}

}  // namespace
}  // namespace renzan
