// The cache that several threads and processes share, of which some are killed.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/storage/cache/block_cache_testing.h"

namespace renzan::cache_testing {
namespace {

// What is fetched at this moment can be evicted a moment later.
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
  // Some chunks go from one file to another while their sizes are added up.
  EXPECT_LE(most, kRoom * kBlock * 3 / 2);
  EXPECT_GE(most, kRoom * kBlock * 3 / 4) << "it was not small";
  // Its process may have ended before the others, which then needed its room.
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
    // All of the room can be had, whatever was needed or fetched when it was killed.
    std::vector<uint64_t> chunks = AllChunksOf(data, *cache);
    std::shuffle(chunks.begin(), chunks.end(), random);
    chunks.resize(kRoom);
    Read(data, *cache, chunks);
    for (const uint64_t chunk : AllChunksOf(data, *cache)) Read(data, *cache, {chunk});
    EXPECT_LE(DiskBytesIn(directory_), kRoom * kBlock + 3 * 4096);
  }
}

// Also while others go on.
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

// Each needs two thirds of the room at a time.
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

// Folders are removed, made again, and made with smaller chunks, while others look for what they
// may evict.
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

// As one leaves that is killed after it has written a chunk, or before it has freed one.
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
}  // namespace renzan::cache_testing
