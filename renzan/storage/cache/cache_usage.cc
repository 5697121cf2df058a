#include "renzan/storage/cache/cache_usage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/log.h"
#include "renzan/storage/cache/flock.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

// Evictions free at least this fraction (1/128) of the limit at a time, because each scans all
// tables.
constexpr uint64_t kPartAtOnce = 128;
constexpr std::string_view kRemoved = ".removed";

// A folder left by a process that was killed while it removed it. Folders of other programs stay.
bool IsRemoved(const std::string& folder) {
  const std::string name = folder.substr(folder.rfind('/') + 1);
  constexpr size_t kIdDigits = 32;
  return name.size() == kIdDigits + kRemoved.size() && name.ends_with(kRemoved) &&
         name.find_first_not_of("0123456789abcdef") == kIdDigits;
}

std::vector<std::string> Folders(const std::string& directory) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error))
    if (i->is_directory(error)) folders.push_back(i->path().string());
  return folders;
}

uint64_t BytesThere(const ChunkTable& table) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < table.num_chunks(); ++i) {
    if (!table[i].is_there()) continue;
    const ChunkTable::Place place = table.PlaceOf(i);
    bytes += place.end - place.begin;
  }
  return bytes;
}

}  // namespace

CacheUsage::CacheUsage(const std::string& directory, uint64_t max_bytes)
    : directory_(directory), max_bytes_(max_bytes) {
  CreateDirectories(directory_);
  const std::string path = directory_ + "/usage";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) FailErrno(errno, "cannot create " + path);
  const bool alone = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (::ftruncate(fd_, sizeof(uint64_t)) != 0) FailErrno(errno, "cannot write " + path);
  void* const map = ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (map == MAP_FAILED) FailErrno(errno, "cannot map " + path);
  used_ = static_cast<std::atomic<uint64_t>*>(map);
  if (alone) CountAnew();
  if (::flock(fd_, LOCK_SH) != 0) FailErrno(errno, "cannot lock " + path);
}

// A killed process may have counted bytes that it did not fetch, or the reverse.
void CacheUsage::CountAnew() {
  uint64_t bytes = 0;
  for (const std::string& folder : Folders(directory_)) {
    if (IsRemoved(folder)) FileSystem::Get().RemoveTree(folder);
    bool is_used = false;
    if (const auto table = ChunkTable::OpenOther(folder, &is_used)) bytes += BytesThere(*table);
  }
  *used_ = bytes;
  counted_anew_ = true;
}

CacheUsage::~CacheUsage() {
  ::munmap(used_, sizeof(uint64_t));
  ::close(fd_);
}

bool CacheUsage::TryReserve(uint64_t bytes) {
  uint64_t used = *used_;
  while (used + bytes <= max_bytes_)
    if (used_->compare_exchange_weak(used, used + bytes)) return true;
  return false;
}

void CacheUsage::GiveBack(uint64_t bytes) {
  uint64_t used = *used_;
  while (!used_->compare_exchange_weak(used, used - std::min(used, bytes))) {
  }
}

bool CacheUsage::Reserve(uint64_t bytes, const Evictable& evictable) {
  if (TryReserve(bytes)) return true;
  Flock one_at_a_time(directory_ + "/eviction");
  one_at_a_time.Take(/*wait=*/true);
  // Others may take what was just freed.
  while (!TryReserve(bytes))
    if (Evict(bytes, evictable) == 0) return TryReserve(bytes);
  return true;
}

uint64_t CacheUsage::Evict(uint64_t bytes, const Evictable& evictable) {
  uint64_t all_freed = 0;
  std::vector<std::unique_ptr<ChunkTable>> used;
  struct Unused {
    fs::file_time_type last_use;
    std::unique_ptr<ChunkTable> table;
  };
  std::vector<Unused> unused;
  for (const std::string& folder : Folders(directory_)) {
    if (IsRemoved(folder)) FileSystem::Get().RemoveTree(folder);
    bool is_used = false;
    std::unique_ptr<ChunkTable> table = ChunkTable::OpenOther(folder, &is_used);
    if (table == nullptr) continue;
    std::error_code error;
    if (is_used) {
      used.push_back(std::move(table));
    } else {
      unused.push_back({fs::last_write_time(folder + "/state", error), std::move(table)});
    }
  }
  std::sort(unused.begin(), unused.end(),
            [](const Unused& a, const Unused& b) { return a.last_use < b.last_use; });
  for (const Unused& other : unused) {
    if (*used_ + bytes <= max_bytes_) return all_freed;
    const uint64_t freed = BytesThere(*other.table);
    RemoveFolder(other.table->folder());
    GiveBack(freed);
    all_freed += freed;
  }
  if (*used_ + bytes > max_bytes_)
    all_freed += EvictChunks(std::max(bytes, max_bytes_ / kPartAtOnce), evictable, used);
  return all_freed;
}

// We hold the folder's table exclusively, so nobody starts to use it meanwhile.
void CacheUsage::RemoveFolder(const std::string& folder) {
  const std::string removed = folder + std::string(kRemoved);
  FileSystem& files = FileSystem::Get();
  files.RemoveTree(removed);
  if (files.Rename(folder, removed) != 0 || files.RemoveTree(removed) != 0)
    LogWarning("cannot remove {} from the cache: {}", folder, std::strerror(errno));
}

uint64_t CacheUsage::EvictChunks(uint64_t bytes, const Evictable& evictable,
                                 const std::vector<std::unique_ptr<ChunkTable>>& tables) {
  struct Candidate {
    uint32_t next_use;
    uint32_t table;
    uint64_t chunk;
  };
  std::vector<Candidate> candidates;
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const ChunkTable& table = *tables[t];
    for (uint64_t i = 0; i < table.num_chunks(); ++i)
      if (table[i].is_there() && table[i].next_use > evictable.later_than &&
          !(evictable.but && evictable.but(table.folder(), i)))
        candidates.push_back({table[i].next_use, t, i});
  }
  const auto needed_later = [](const Candidate& a, const Candidate& b) {
    return a.next_use > b.next_use;
  };
  std::make_heap(candidates.begin(), candidates.end(),
                 [&](const Candidate& a, const Candidate& b) { return needed_later(b, a); });
  uint64_t freed = 0;
  while (freed < bytes && !candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(),
                  [&](const Candidate& a, const Candidate& b) { return needed_later(b, a); });
    const Candidate last = candidates.back();
    candidates.pop_back();
    const ChunkTable& table = *tables[last.table];
    // Whoever holds the lock is fetching the chunk right now, for a use that we do not know of.
    const std::unique_ptr<ChunkTable::Lock> lock =
        ChunkTable::Lock::Take(table, last.chunk, /*wait=*/false);
    if (lock == nullptr || !table[last.chunk].is_there()) continue;
    const ChunkTable::Place place = table.PlaceOf(last.chunk);
    table.Evict(last.chunk);
    GiveBack(place.end - place.begin);
    freed += place.end - place.begin;
  }
  return freed;
}

}  // namespace renzan
