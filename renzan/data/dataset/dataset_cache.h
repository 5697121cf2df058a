#pragma once

// The cache of a dataset in a store (storage/cache/block_cache.h): which of its chunks hold which
// rows. Thread-safe once all files are added and Open() was called.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/storage/cache/block_cache.h"

namespace renzan {

class DatasetCache {
 public:
  DatasetCache(BlockCache::Options options) : options_(std::move(options)) {}

  // Adds a file of the dataset, before Open(). Returns its index.
  size_t AddFile(BlockCache::File file);
  void Open();
  const BlockCache& cache() const { return *cache_; }
  std::string LocalPath(size_t file) const { return cache_->LocalPath(file); }
  // Calls read() while the beginnings of the files, with their headers, are in the cache.
  void ReadHeaders(std::span<const size_t> files, const std::function<void()>& read);

  // Where a file holds `row_bytes` bytes for each row of a shard, from `data_offset` on.
  struct Column {
    size_t file = 0;
    uint64_t data_offset = 0, row_bytes = 0;
  };
  struct Jagged {
    Column offsets;
    const int64_t* offsets_data = nullptr;  // in a map of the file
    size_t values_file = 0;
    uint64_t values_offset = 0, value_bytes = 0, num_values = 0;
  };
  struct Shard {
    int64_t first_row = 0, rows = 0;
    std::vector<Column> columns;
    std::vector<Jagged> jagged;
  };
  void AddShard(Shard shard);

  // Calls read() while everything that belongs to these rows is in the cache. If something was
  // evicted meanwhile, calls it again, and ignores what it threw. ReadHeaders() does the same.
  void ReadRows(std::span<const int64_t> rows, const std::function<void()>& read);

  // Fetches rows [begin, end), which are needed at `next_use`. Returns false if there is no room.
  bool PrefetchRows(int64_t begin, int64_t end, uint32_t next_use);
  // Sets when the chunks of rows [begin, end) are needed next. A chunk also holds rows before and
  // after these; next_use_of_rows() says when rows are needed.
  void SetNextUse(int64_t begin, int64_t end,
                  const std::function<uint32_t(int64_t begin, int64_t end)>& next_use_of_rows);

 private:
  // Calls need(reading) and read() until all was there; need() is false if it must be called again.
  void Read(const std::function<bool(BlockCache::Reading&)>& need,
            const std::function<void()>& read);
  const Shard& ShardOf(int64_t row) const;
  void AddColumns(const Shard& shard, int64_t begin, int64_t end,
                  std::vector<uint64_t>* chunks) const;
  void AddValues(const Shard& shard, int64_t begin, int64_t end,
                 std::vector<uint64_t>* chunks) const;
  // Calls body(shard, first row in it, end row in it) for the parts of [begin, end).
  template <typename Body>
  void ForEachPart(int64_t begin, int64_t end, const Body& body) const;

  const BlockCache::Options options_;
  std::vector<BlockCache::File> files_;
  std::unique_ptr<BlockCache> cache_;
  std::vector<Shard> shards_;
  bool has_jagged_ = false;
};

}  // namespace renzan
