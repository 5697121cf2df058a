#pragma once

// Caches files of a store on a local disk, as far as they are needed: each is a sparse file of the
// same size, cut into chunks; the chunks that are present hold the store's bytes. Programs map the
// file and read the chunks that they have asked for.
//
//   BlockCache::Reading reading(cache);
//   do {
//     reading.Need(chunks);   // fetches what is missing, verified
//     ... read them through a map of LocalPath(file)
//   } while (!reading.WasThere());
//
// All processes of a machine share a cache directory, and so do runs one after another. What is
// there outlives its processes, however they end. All files together take at most `max_bytes`: a
// chunk that is needed takes the place of those that are needed last (the caller says when that is;
// L. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966).
//
// How processes keep out of each other's way: a lock of the kernel on each chunk, held while it is
// fetched or evicted, ends with the process. Readers take none. A chunk's version changes before it
// is evicted, so a reader that finds it unchanged after reading has read the right bytes. Readers
// that together need more than there is room for take turns: what the one whose turn it is needs is
// evicted by nobody.
//
// Layout: DIRECTORY/{usage,eviction,turn} (bytes used by all, locks), DIRECTORY/ID/{state,files}
// and the files. Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "renzan/storage/cache/cache_usage.h"
#include "renzan/storage/cache/chunk_table.h"

namespace renzan {

class BlockCache {
  class Turn;

 public:
  // Checksums are of blocks of this size.
  static constexpr uint64_t kBlockBytes = 64 << 10;
  // Chunks are large where everything fits, which takes few requests, and small elsewhere, so that
  // little is fetched only to be evicted before it is read.
  static constexpr uint64_t kLargeChunkBytes = 4 << 20, kSmallChunkBytes = kBlockBytes;
  // How many chunks Reading::Need() and the callers of Prefetch() fetch at a time.
  static constexpr size_t kLargeChunksAtOnce = 6, kSmallChunksAtOnce = 16;
  size_t chunks_at_once() const {
    return chunk_bytes() == kLargeChunkBytes ? kLargeChunksAtOnce : kSmallChunksAtOnce;
  }

  struct File {
    std::string path;  // in the store
    std::string name;  // below LocalDirectory()
    uint64_t bytes = 0;
    std::vector<uint64_t> checksums;  // XXH3 of every block
  };
  struct Options {
    std::string directory;
    uint64_t max_bytes = 0;
    std::string id;  // identifies this content: equal only for equal files
  };

  // Throws Error kCantCreate or kIo for a directory that cannot be used.
  BlockCache(Options options, std::vector<File> files);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // DIRECTORY/ID, before a BlockCache is made.
  static std::string LocalDirectory(const Options& options);
  std::string LocalPath(size_t file) const;

  uint64_t chunk_bytes() const { return table_->chunk_bytes(); }
  uint64_t total_bytes() const { return total_bytes_; }
  // Whether all files fit, so that nothing need be evicted for them.
  bool FitsWhole() const { return total_bytes_ <= options_.max_bytes; }
  // Appends the chunks that cover bytes [begin, end) of a file.
  void AddChunks(size_t file, uint64_t begin, uint64_t end, std::vector<uint64_t>* chunks) const;
  // The file of a chunk, and its bytes [begin, end) there.
  struct Place {
    size_t file = 0;
    uint64_t begin = 0, end = 0;
  };
  Place PlaceOf(uint64_t chunk) const;

  // One reader's use of chunks. Its destructor marks them as read: those not expected to be needed
  // again may be evicted after a while. Not thread-safe; a thread has one at a time.
  class Reading {
   public:
    explicit Reading(BlockCache& cache);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    // Makes all of them present at the same time, and ends the use of those of the previous call.
    // Throws Error kConfig if they do not fit, kIo for a full disk or a store that does not work,
    // kData for bytes that do not match their checksums.
    void Need(std::span<const uint64_t> chunks);
    // Whether all have been present ever since. If not, this reader asks for the turn.
    bool WasThere();

   private:
    BlockCache& cache_;
    std::vector<uint64_t> chunks_;
    std::vector<uint32_t> versions_;
    std::unique_ptr<Turn> turn_;
  };

  // When a chunk is needed next, in seconds since 1970; the later, the sooner it is evicted.
  // kNever: it is not needed again.
  static constexpr uint32_t kNever = UINT32_MAX;
  void SetNextUse(uint64_t chunk, uint32_t next_use);
  // Fetches a chunk that will be needed at that time (and perhaps sooner) unless it is present.
  // False if every other chunk there is needed sooner.
  bool Prefetch(uint64_t chunk, uint32_t next_use);

  struct Stats {
    uint64_t needed = 0, missed = 0;  // chunks, by Reading::Need()
    uint64_t fetched_bytes = 0;
    double waited_seconds = 0;  // in Reading::Need()
    double hit_rate() const {
      return needed == 0 ? 1 : 1 - static_cast<double>(missed) / static_cast<double>(needed);
    }
  };
  Stats stats() const;

 private:
  enum class Result { kThere, kNoRoom, kElsewhere };
  // Makes a chunk present, evicting only what `evictable` allows. kElsewhere: somebody else is
  // fetching it, and `wait` is false.
  Result Ensure(uint64_t chunk, const CacheUsage::Evictable& evictable, uint32_t next_use,
                bool wait);
  // Both need sorted chunks.
  void Need(std::span<const uint64_t> chunks, Turn& turn, std::vector<uint32_t>* versions);
  void FetchMissing(uint64_t chunk, std::span<const uint64_t> needed, Turn& turn);
  bool AreThere(std::span<const uint64_t> chunks, std::span<const uint32_t> versions) const;
  void DoneWith(std::span<const uint64_t> chunks);
  bool IsIntact(uint64_t chunk, const Place& place, std::span<std::byte> buffer) const;
  void FetchInto(const Place& place, std::span<std::byte> buffer) const;
  std::vector<std::byte> TakeBuffer();
  void GiveBack(std::vector<std::byte> buffer);
  std::string WhyDamaged(const Place& place, std::span<const std::byte> bytes) const;

  const Options options_;
  const std::vector<File> files_;
  uint64_t total_bytes_ = 0;
  std::vector<uint64_t> first_chunks_;  // of each file, then the number of all chunks
  std::unique_ptr<CacheUsage> usage_;
  std::unique_ptr<ChunkTable> table_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> buffers_;  // of one chunk each, for reuse
  std::atomic<uint64_t> needed_{0}, missed_{0}, fetched_bytes_{0}, waited_us_{0};
};

}  // namespace renzan
