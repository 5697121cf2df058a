#pragma once

// For tests of the cache: a directory for it, and files of this machine that play the store.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/xxhash.h"
#include "renzan/storage/cache/block_cache.h"

namespace renzan::cache_testing {

inline constexpr uint64_t kBlock = BlockCache::kBlockBytes;
inline constexpr uint64_t kHeaderBytes = 64;  // of a table
inline constexpr uint32_t kLater = 2000000000;
inline constexpr const char* kId = "0123456789abcdef0123456789abcdef";

struct Data {
  std::vector<BlockCache::File> files;
  std::vector<std::string> contents;
};

inline std::string RandomText(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text((bytes + 7) / 8 * 8, '\0');
  for (size_t i = 0; i < text.size(); i += 8) {
    const uint64_t word = random() | 1;  // no byte of a file is what a hole has
    std::memcpy(&text[i], &word, sizeof word);
  }
  text.resize(bytes);
  return text;
}

inline uint64_t DiskBytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;  // a folder may go meanwhile
  for (std::filesystem::recursive_directory_iterator i(directory, error), end; !error && i != end;
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

  // Of these sizes, in bytes.
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
  // Of what the tables say to be there.
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

// Whether the chunks, read through maps, are what the store has.
inline bool AreRight(const Data& data, const BlockCache& cache,
                     const std::vector<uint64_t>& chunks) {
  return std::all_of(chunks.begin(), chunks.end(), [&](uint64_t chunk) {
    const BlockCache::Place place = cache.PlaceOf(chunk);
    const MappedFile map(cache.LocalPath(place.file));
    return map.size() == data.contents[place.file].size() &&
           std::memcmp(map.bytes().data() + place.begin, &data.contents[place.file][place.begin],
                       place.end - place.begin) == 0;
  });
}

// As a reader does.
inline void Read(const Data& data, BlockCache& cache, const std::vector<uint64_t>& chunks) {
  BlockCache::Reading reading(cache);
  bool right;
  do {
    reading.Need(chunks);
    right = AreRight(data, cache, chunks);
  } while (!reading.WasThere());
  EXPECT_TRUE(right);
}

inline std::vector<uint64_t> AllChunksOf(const Data& data, const BlockCache& cache) {
  std::vector<uint64_t> chunks;
  for (size_t file = 0; file < data.files.size(); ++file)
    cache.AddChunks(file, 0, data.files[file].bytes, &chunks);
  return chunks;
}

}  // namespace renzan::cache_testing
