#include "renzan/storage/cache/block_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/xxhash.h"
#include "renzan/storage/cache/flock.h"
#include "renzan/storage/in_parallel.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// The next use of chunks in use right now: nobody evicts them, except whose turn it is.
constexpr uint32_t kNow = 1;
constexpr uint32_t kSoonSeconds = 60;
constexpr auto kLongestWait = std::chrono::seconds(60);
// A reader that keeps the turn for longer may be a process that is suspended.
constexpr auto kLongestTurn = std::chrono::seconds(20);
constexpr auto kBetweenTries = std::chrono::milliseconds(5);

std::vector<ChunkTable::File> TableFiles(const std::vector<BlockCache::File>& files) {
  std::vector<ChunkTable::File> table;
  for (const BlockCache::File& file : files) table.push_back({file.name, file.bytes});
  return table;
}

void WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const bool is_full = errno == ENOSPC || errno == EDQUOT;
      FailErrno(errno, fmt::format("cannot write {}, a file of the cache{}", path,
                                   is_full ? " (set data.cache.size to what its disk has, or "
                                             "data.cache.directory to a larger one)"
                                           : ""));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

}  // namespace

// The reader that holds the turn may evict what others need right now. A reader's threads share it.
class BlockCache::Turn {
 public:
  explicit Turn(const BlockCache& cache) : lock_(cache.options_.directory + "/turn") {}

  bool TryToTake() {
    const std::lock_guard lock(mutex_);
    return lock_.Take(/*wait=*/false);
  }
  bool is_taken() {
    const std::lock_guard lock(mutex_);
    return lock_.is_taken();
  }
  void Wait() {
    const auto deadline = std::chrono::steady_clock::now() + kLongestTurn;
    while (!TryToTake() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(kBetweenTries);
  }

 private:
  std::mutex mutex_;
  Flock lock_;
};

std::string BlockCache::LocalDirectory(const Options& options) {
  return options.directory + "/" + options.id;
}

std::string BlockCache::LocalPath(size_t file) const {
  return LocalDirectory(options_) + "/" + files_[file].name;
}

BlockCache::BlockCache(Options options, std::vector<File> files)
    : options_(std::move(options)), files_(std::move(files)) {
  for (const File& file : files_) {
    CHECK(file.checksums.size() == (file.bytes + kBlockBytes - 1) / kBlockBytes);
    total_bytes_ += file.bytes;
  }
  CreateDirectories(options_.directory);
  table_ = std::make_unique<ChunkTable>(LocalDirectory(options_), TableFiles(files_),
                                        FitsWhole() ? kLargeChunkBytes : kSmallChunkBytes);
  usage_ = std::make_unique<CacheUsage>(options_.directory, options_.max_bytes);
  if (!usage_->counted_anew()) usage_->GiveBack(table_->dropped_bytes());
  usage_->Reserve(0, {});  // the limit may be lower than it was
  first_chunks_ = {0};
  for (const File& file : files_)
    first_chunks_.push_back(first_chunks_.back() +
                            (file.bytes + chunk_bytes() - 1) / chunk_bytes());
}

BlockCache::~BlockCache() = default;

void BlockCache::AddChunks(size_t file, uint64_t begin, uint64_t end,
                           std::vector<uint64_t>* chunks) const {
  if (begin == end) return;
  for (uint64_t i = begin / chunk_bytes(); i <= (end - 1) / chunk_bytes(); ++i)
    chunks->push_back(first_chunks_[file] + i);
}

BlockCache::Place BlockCache::PlaceOf(uint64_t chunk) const {
  const ChunkTable::Place place = table_->PlaceOf(chunk);
  return {place.file, place.begin, place.end};
}

// Describes the first block whose checksum does not match; empty if all match.
std::string BlockCache::WhyDamaged(const Place& place, std::span<const std::byte> bytes) const {
  for (uint64_t at = 0; at < bytes.size(); at += kBlockBytes) {
    const uint64_t found =
        Xxh3OfBlock(bytes.data() + at, std::min<uint64_t>(kBlockBytes, bytes.size() - at));
    const uint64_t expected = files_[place.file].checksums[(place.begin + at) / kBlockBytes];
    if (found != expected)
      return fmt::format("bytes {} to {} are corrupt (XXH3 {:016x}, not {:016x})", place.begin + at,
                         std::min(place.begin + at + kBlockBytes, place.end) - 1, found, expected);
  }
  return "";
}

// Whether a chunk fetched before the machine last restarted still has its checksums.
bool BlockCache::IsIntact(uint64_t, const Place& place, std::span<std::byte> buffer) const {
  const ChunkTable::OpenFile file(LocalPath(place.file));
  const ssize_t count =
      ::pread(file.fd(), buffer.data(), buffer.size(), static_cast<off_t>(place.begin));
  return count == static_cast<ssize_t>(buffer.size()) && WhyDamaged(place, buffer).empty();
}

void BlockCache::FetchInto(const Place& place, std::span<std::byte> buffer) const {
  const std::string& path = files_[place.file].path;
  std::string damage;
  // Twice: bytes damaged in transit may arrive intact the second time.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Storage::Of(path).ReadRange(path, place.begin, buffer);
    damage = WhyDamaged(place, buffer);
    if (damage.empty()) return;
  }
  Fail(ErrorCode::kData,
       "{}: {}: restore the file or import the data again; `renzan data verify` checks all files",
       path, damage);
}

std::vector<std::byte> BlockCache::TakeBuffer() {
  {
    const std::lock_guard lock(mutex_);
    if (!buffers_.empty()) {
      std::vector<std::byte> buffer = std::move(buffers_.back());
      buffers_.pop_back();
      return buffer;
    }
  }
  return std::vector<std::byte>(chunk_bytes());
}

void BlockCache::GiveBack(std::vector<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

BlockCache::Result BlockCache::Ensure(uint64_t chunk, const CacheUsage::Evictable& evictable,
                                      uint32_t next_use, bool wait) {
  ChunkTable::Chunk& entry = (*table_)[chunk];
  const auto is_ready = [&] {
    return entry.is_there() && entry.verified_in == table_->machine_start();
  };
  if (is_ready()) return Result::kThere;
  const std::unique_ptr<ChunkTable::Lock> lock = ChunkTable::Lock::Take(*table_, chunk, wait);
  if (lock == nullptr) return Result::kElsewhere;
  if (is_ready()) return Result::kThere;
  const Place place = PlaceOf(chunk);
  // Returned by its destructor, whatever happens.
  struct Buffer {
    BlockCache& cache;
    std::vector<std::byte> bytes;
    ~Buffer() { cache.GiveBack(std::move(bytes)); }
  } all{*this, TakeBuffer()};
  const auto buffer = std::span(all.bytes).first(place.end - place.begin);
  if (entry.is_there()) {
    if (IsIntact(chunk, place, buffer)) {
      entry.verified_in = table_->machine_start();
      return Result::kThere;
    }
    table_->Evict(chunk);
    usage_->GiveBack(buffer.size());
  }
  if (!usage_->Reserve(buffer.size(), evictable)) return Result::kNoRoom;
  try {
    FetchInto(place, buffer);
    const std::string path = LocalPath(place.file);
    const ChunkTable::OpenFile file(path);
    if (file.fd() < 0) FailErrno(errno, fmt::format("cannot open {}, a file of the cache", path));
    WriteAt(file.fd(), buffer, place.begin, path);
  } catch (...) {
    usage_->GiveBack(buffer.size());
    throw;
  }
  fetched_bytes_ += buffer.size();
  entry.next_use = next_use;
  entry.verified_in = table_->machine_start();
  entry.version.fetch_add(1, std::memory_order_release);
  return Result::kThere;
}

// Waits for the turn, or for room: chunks that others are fetching can be evicted once they are
// there.
void BlockCache::FetchMissing(uint64_t chunk, std::span<const uint64_t> needed, Turn& turn) {
  const auto is_needed = [&](const std::string& folder, uint64_t other) {
    return folder.ends_with("/" + options_.id) &&
           std::binary_search(needed.begin(), needed.end(), other);
  };
  const CacheUsage::Evictable unexpected{.later_than = kNow, .but = is_needed};
  // Even chunks that others need now: a live reader notices, and a dead one does not care.
  const CacheUsage::Evictable all{.later_than = 0, .but = is_needed};
  const auto begin = std::chrono::steady_clock::now();
  while (Ensure(chunk, unexpected, kNow, /*wait=*/true) == Result::kNoRoom) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    if ((turn.TryToTake() || waited > kLongestTurn) &&
        Ensure(chunk, all, kNow, /*wait=*/true) != Result::kNoRoom)
      return;
    if (waited > kLongestWait)
      Fail(ErrorCode::kConfig,
           "the cache {} is full of chunks in use right now: raise data.cache.size ({} bytes "
           "now)",
           options_.directory, options_.max_bytes);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void BlockCache::Need(std::span<const uint64_t> chunks, Turn& turn,
                      std::vector<uint32_t>* versions) {
  needed_ += chunks.size();
  versions->resize(chunks.size());
  uint64_t bytes = 0;
  std::vector<uint64_t> missing;
  for (size_t i = 0; i < chunks.size(); ++i) {
    ChunkTable::Chunk& entry = (*table_)[chunks[i]];
    (*versions)[i] = entry.version.load(std::memory_order_acquire);
    if ((*versions)[i] % 2 == 0 || entry.verified_in != table_->machine_start())
      missing.push_back(chunks[i]);
    const Place place = PlaceOf(chunks[i]);
    bytes += place.end - place.begin;
  }
  if (missing.empty() && !turn.is_taken()) return;
  if (bytes > options_.max_bytes)
    Fail(ErrorCode::kConfig,
         "the cache {} may have {} bytes, but one batch needs {}: raise data.cache.size",
         options_.directory, options_.max_bytes, bytes);
  missed_ += missing.size();
  const auto begin = std::chrono::steady_clock::now();
  for (const uint64_t chunk : chunks) (*table_)[chunk].next_use = kNow;
  InParallel(
      missing.size(), [&](size_t i) { FetchMissing(missing[i], chunks, turn); }, chunks_at_once());
  for (size_t i = 0; i < chunks.size(); ++i)
    (*versions)[i] = (*table_)[chunks[i]].version.load(std::memory_order_acquire);
  waited_us_ += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::steady_clock::now() - begin)
                                          .count());
}

bool BlockCache::AreThere(std::span<const uint64_t> chunks,
                          std::span<const uint32_t> versions) const {
  // Keeps earlier reads of the data from moving below the checks that follow.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (size_t i = 0; i < chunks.size(); ++i)
    if (versions[i] % 2 == 0 ||
        (*table_)[chunks[i]].version.load(std::memory_order_relaxed) != versions[i])
      return false;
  return true;
}

void BlockCache::DoneWith(std::span<const uint64_t> chunks) {
  for (const uint64_t chunk : chunks) {
    uint32_t expected = kNow;
    std::atomic<uint32_t>& next_use = (*table_)[chunk].next_use;
    if (next_use.load(std::memory_order_relaxed) == kNow)
      next_use.compare_exchange_strong(
          expected, static_cast<uint32_t>(SystemClock().UnixSeconds()) + kSoonSeconds);
  }
}

BlockCache::Reading::Reading(BlockCache& cache)
    : cache_(cache), turn_(std::make_unique<Turn>(cache)) {}

BlockCache::Reading::~Reading() { cache_.DoneWith(chunks_); }

void BlockCache::Reading::Need(std::span<const uint64_t> chunks) {
  std::vector<uint64_t> before = std::move(chunks_);
  chunks_.assign(chunks.begin(), chunks.end());
  std::sort(chunks_.begin(), chunks_.end());
  std::erase_if(before, [&](uint64_t chunk) {
    return std::binary_search(chunks_.begin(), chunks_.end(), chunk);
  });
  cache_.DoneWith(before);
  cache_.Need(chunks_, *turn_, &versions_);
}

bool BlockCache::Reading::WasThere() {
  if (cache_.AreThere(chunks_, versions_)) return true;
  turn_->Wait();
  return false;
}

void BlockCache::SetNextUse(uint64_t chunk, uint32_t next_use) {
  (*table_)[chunk].next_use = next_use;
}

bool BlockCache::Prefetch(uint64_t chunk, uint32_t next_use) {
  if (Ensure(chunk, {.later_than = next_use}, next_use, /*wait=*/false) == Result::kNoRoom)
    return false;
  // The chunk may be needed sooner as well.
  std::atomic<uint32_t>& known = (*table_)[chunk].next_use;
  uint32_t sooner = known;
  while (next_use < sooner && !known.compare_exchange_weak(sooner, next_use)) {
  }
  return true;
}

BlockCache::Stats BlockCache::stats() const {
  return {.needed = needed_,
          .missed = missed_,
          .fetched_bytes = fetched_bytes_,
          .waited_seconds = static_cast<double>(waited_us_) / 1e6};
}

}  // namespace renzan
