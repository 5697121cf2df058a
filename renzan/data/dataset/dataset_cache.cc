#include "renzan/data/dataset/dataset_cache.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr int kMostAttempts = 1000;

void SortUnique(std::vector<uint64_t>* chunks) {
  std::sort(chunks->begin(), chunks->end());
  chunks->erase(std::unique(chunks->begin(), chunks->end()), chunks->end());
}

}  // namespace

size_t DatasetCache::AddFile(BlockCache::File file) {
  files_.push_back(std::move(file));
  return files_.size() - 1;
}

void DatasetCache::Open() { cache_ = std::make_unique<BlockCache>(options_, std::move(files_)); }

void DatasetCache::Read(const std::function<bool(BlockCache::Reading&)>& need,
                        const std::function<void()>& read) {
  BlockCache::Reading reading(*cache_);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (!need(reading)) continue;
    try {
      read();
    } catch (const Error&) {
      if (reading.WasThere()) throw;
      continue;
    }
    if (reading.WasThere()) return;
  }
  // Other readers that need as much at the same time keep evicting it.
  Fail(ErrorCode::kConfig,
       "the cache {} is too small for what is read from it at the same time: raise "
       "data.cache.size ({} bytes now)",
       options_.directory, options_.max_bytes);
}

void DatasetCache::ReadHeaders(std::span<const size_t> files, const std::function<void()>& read) {
  std::vector<uint64_t> chunks;
  for (const size_t file : files) cache_->AddChunks(file, 0, 1, &chunks);
  const auto need = [&](BlockCache::Reading& reading) {
    reading.Need(chunks);
    return true;
  };
  Read(need, read);
}

void DatasetCache::AddShard(Shard shard) {
  std::erase_if(shard.columns, [](const Column& column) { return column.row_bytes == 0; });
  has_jagged_ = has_jagged_ || !shard.jagged.empty();
  shards_.push_back(std::move(shard));
}

const DatasetCache::Shard& DatasetCache::ShardOf(int64_t row) const {
  const auto next =
      std::upper_bound(shards_.begin(), shards_.end(), row,
                       [](int64_t at, const Shard& shard) { return at < shard.first_row; });
  return *(next - 1);
}

void DatasetCache::AddColumns(const Shard& shard, int64_t begin, int64_t end,
                              std::vector<uint64_t>* chunks) const {
  const auto from = static_cast<uint64_t>(begin), to = static_cast<uint64_t>(end);
  for (const Column& column : shard.columns)
    cache_->AddChunks(column.file, column.data_offset + from * column.row_bytes,
                      column.data_offset + to * column.row_bytes, chunks);
  for (const Jagged& jagged : shard.jagged)  // a bag ends where the next one begins
    cache_->AddChunks(jagged.offsets.file,
                      jagged.offsets.data_offset + from * jagged.offsets.row_bytes,
                      jagged.offsets.data_offset + (to + 1) * jagged.offsets.row_bytes, chunks);
}

// The offsets must be in the cache. Wrong ones are left to the reader, which reports them.
void DatasetCache::AddValues(const Shard& shard, int64_t begin, int64_t end,
                             std::vector<uint64_t>* chunks) const {
  for (const Jagged& jagged : shard.jagged) {
    const int64_t first = jagged.offsets_data[begin], last = jagged.offsets_data[end];
    if (first < 0 || last < first || last > static_cast<int64_t>(jagged.num_values)) continue;
    cache_->AddChunks(jagged.values_file,
                      jagged.values_offset + static_cast<uint64_t>(first) * jagged.value_bytes,
                      jagged.values_offset + static_cast<uint64_t>(last) * jagged.value_bytes,
                      chunks);
  }
}

template <typename Body>
void DatasetCache::ForEachPart(int64_t begin, int64_t end, const Body& body) const {
  while (begin < end) {
    const Shard& shard = ShardOf(begin);
    const int64_t part_end = std::min(end, shard.first_row + shard.rows);
    body(shard, begin - shard.first_row, part_end - shard.first_row);
    begin = part_end;
  }
}

void DatasetCache::ReadRows(std::span<const int64_t> rows, const std::function<void()>& read) {
  std::vector<uint64_t> chunks;
  const auto add = [&](auto member) {
    for (const int64_t row : rows) {
      const Shard& shard = ShardOf(row);
      (this->*member)(shard, row - shard.first_row, row - shard.first_row + 1, &chunks);
    }
    SortUnique(&chunks);
  };
  const auto need = [&](BlockCache::Reading& reading) {
    chunks.clear();
    add(&DatasetCache::AddColumns);
    reading.Need(chunks);
    if (!has_jagged_) return true;
    add(&DatasetCache::AddValues);
    reading.Need(chunks);
    // The offsets may have been evicted while they were read.
    if (!reading.WasThere()) return false;
    const size_t before = chunks.size();
    add(&DatasetCache::AddValues);
    return chunks.size() == before;
  };
  Read(need, read);
}

bool DatasetCache::PrefetchRows(int64_t begin, int64_t end, uint32_t next_use) {
  bool has_room = true;
  std::vector<uint64_t> chunks;
  const auto prefetch = [&] {
    SortUnique(&chunks);
    for (const uint64_t chunk : chunks) has_room = has_room && cache_->Prefetch(chunk, next_use);
    chunks.clear();
  };
  ForEachPart(begin, end, [&](const Shard& shard, int64_t from, int64_t to) {
    AddColumns(shard, from, to, &chunks);
    prefetch();
    if (has_room) AddValues(shard, from, to, &chunks);
    prefetch();
  });
  return has_room;
}

void DatasetCache::SetNextUse(
    int64_t begin, int64_t end,
    const std::function<uint32_t(int64_t begin, int64_t end)>& next_use_of_rows) {
  std::vector<uint64_t> chunks;
  ForEachPart(begin, end, [&](const Shard& shard, int64_t from, int64_t to) {
    for (const Column& column : shard.columns) {
      chunks.clear();
      cache_->AddChunks(column.file,
                        column.data_offset + static_cast<uint64_t>(from) * column.row_bytes,
                        column.data_offset + static_cast<uint64_t>(to) * column.row_bytes, &chunks);
      for (const uint64_t chunk : chunks) {
        const BlockCache::Place place = cache_->PlaceOf(chunk);
        const auto row_at = [&](uint64_t byte) {
          const uint64_t data = byte > column.data_offset ? byte - column.data_offset : 0;
          return static_cast<int64_t>(data / column.row_bytes);
        };
        const int64_t first = row_at(place.begin);
        const int64_t last = std::min(shard.rows, row_at(place.end - 1) + 1);
        cache_->SetNextUse(chunk,
                           next_use_of_rows(shard.first_row + first, shard.first_row + last));
      }
    }
    // Without offsets it is unknown which other rows have values in a chunk.
    if (shard.jagged.empty()) return;
    chunks.clear();
    for (const Jagged& jagged : shard.jagged)
      cache_->AddChunks(
          jagged.offsets.file,
          jagged.offsets.data_offset + static_cast<uint64_t>(from) * jagged.offsets.row_bytes,
          jagged.offsets.data_offset + static_cast<uint64_t>(to) * jagged.offsets.row_bytes,
          &chunks);
    AddValues(shard, from, to, &chunks);
    SortUnique(&chunks);
    for (const uint64_t chunk : chunks)
      cache_->SetNextUse(chunk, next_use_of_rows(shard.first_row + from, shard.first_row + to));
  });
}

}  // namespace renzan
