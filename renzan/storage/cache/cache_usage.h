#pragma once

// How much of the disk all folders of a cache directory use, counted jointly by all processes, and
// how room is made. Thread-safe.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "renzan/storage/cache/chunk_table.h"

namespace renzan {

class CacheUsage {
 public:
  // Creates the directory. If nobody else uses it, recounts what is there.
  CacheUsage(const std::string& directory, uint64_t max_bytes);
  ~CacheUsage();
  CacheUsage(const CacheUsage&) = delete;
  CacheUsage& operator=(const CacheUsage&) = delete;

  // What may be evicted: chunks needed after `later_than`, except those for which `but(folder,
  // chunk)` is true.
  struct Evictable {
    uint32_t later_than = 0;
    std::function<bool(const std::string& folder, uint64_t chunk)> but = {};
  };
  // Counts `bytes` more if they fit. Otherwise evicts: first folders that no process uses, then the
  // chunks that are needed last. False if that is not enough.
  bool Reserve(uint64_t bytes, const Evictable& evictable);
  void GiveBack(uint64_t bytes);

  uint64_t bytes() const { return *used_; }
  bool counted_anew() const { return counted_anew_; }

 private:
  bool TryReserve(uint64_t bytes);
  // Returns how many bytes were freed.
  uint64_t Evict(uint64_t bytes, const Evictable& evictable);
  uint64_t EvictChunks(uint64_t bytes, const Evictable& evictable,
                       const std::vector<std::unique_ptr<ChunkTable>>& tables);
  void RemoveFolder(const std::string& folder);
  void CountAnew();

  const std::string directory_;
  const uint64_t max_bytes_;
  int fd_ = -1;
  bool counted_anew_ = false;
  std::atomic<uint64_t>* used_ = nullptr;
};

}  // namespace renzan
