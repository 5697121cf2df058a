#include "renzan/storage/cache/chunk_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/xxhash.h"

namespace renzan {
namespace {

constexpr char kMagic[8] = {'R', 'Z', 'C', 'H', 'U', 'N', 'K', '1'};
constexpr size_t kHeaderBytes = 64;

// How often to look at a table with larger chunks that is in use before using it as it is.
constexpr int kMostLooks = 100;
constexpr auto kOneLook = std::chrono::milliseconds(5);

struct Header {
  char magic[8];
  uint64_t chunk_bytes, num_chunks;
  uint64_t files;  // XXH3 of the list of files
};
static_assert(sizeof(Header) <= kHeaderBytes);

uint64_t Chunks(uint64_t bytes, uint64_t chunk_bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

// Differs between two starts of the machine.
uint32_t MachineStart() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return static_cast<uint32_t>(Xxh3OfBlock(id.data(), id.size())) | 1;  // not that of a new entry
}

std::string ListOf(const std::vector<ChunkTable::File>& files) {
  std::string list;
  for (const ChunkTable::File& file : files) list += fmt::format("{} {}\n", file.bytes, file.name);
  return list;
}

// Whether the path leads to the open file.
bool IsStill(int fd, const std::string& path) {
  struct stat mine {};
  struct stat there {};
  return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino;
}

void WriteSmallFile(const std::string& path, const std::string& text) {
  FileWriter file(path);
  file.Write(text);
  file.Close();
}

}  // namespace

ChunkTable::ChunkTable(const std::string& folder, const std::vector<File>& files,
                       uint64_t chunk_bytes)
    : folder_(folder), files_(files), machine_start_(MachineStart()) {
  // A process that evicts holds the table only for a moment; one that uses it, for long.
  for (int attempt = 0;; ++attempt) {
    if (TryToOpen(files, chunk_bytes) && (chunk_bytes_ <= chunk_bytes || attempt >= kMostLooks))
      break;
    Close();
    std::this_thread::sleep_for(kOneLook);
  }
  ::futimens(fd_, nullptr);  // unused folders are evicted in the order of their last use
}

// False if a faster process removed the folder, or created its table for other files.
bool ChunkTable::TryToOpen(const std::vector<File>& files, uint64_t chunk_bytes) {
  CreateDirectories(folder_);
  const std::string path = folder_ + "/state";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0 && errno == ENOENT) return false;
  if (fd_ < 0) FailErrno(errno, "cannot create " + path);
  // Holding it exclusively, we may recreate it; the lock is then shared with other users.
  const bool is_alone = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (!is_alone && ::flock(fd_, LOCK_SH) != 0) FailErrno(errno, "cannot lock " + path);
  if (!IsStill(fd_, path)) return false;
  if (is_alone && (!Read() || chunk_bytes_ > chunk_bytes)) Create(files, chunk_bytes);
  if (!Read()) return false;
  Map();
  CreateFiles();
  if (!is_alone) return true;
  // A process may have been killed after it wrote a chunk, or before it freed one.
  FreeWhatIsNotThere();
  if (::flock(fd_, LOCK_SH) != 0) FailErrno(errno, "cannot lock " + path);
  // flock() releases the one lock before it takes the other.
  const uint64_t mine = chunk_bytes_;
  return IsStill(fd_, path) && Read() && chunk_bytes_ == mine;
}

void ChunkTable::Close() {
  if (map_ != nullptr) ::munmap(std::exchange(map_, nullptr), map_bytes_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void ChunkTable::FreeWhatIsNotThere() const {
  for (uint64_t first = 0, end; first < num_chunks_; first = end) {
    const Place place = PlaceOf(first);
    for (end = first;
         end < num_chunks_ && !chunks_[end].is_there() && PlaceOf(end).file == place.file;)
      ++end;
    if (end > first) {
      FreeBytes({place.file, place.begin, PlaceOf(end - 1).end});
    } else {
      ++end;
    }
  }
}

std::unique_ptr<ChunkTable> ChunkTable::OpenOther(const std::string& folder, bool* is_used) {
  std::unique_ptr<ChunkTable> table(new ChunkTable());
  table->folder_ = folder;
  table->machine_start_ = MachineStart();
  table->fd_ = ::open((folder + "/state").c_str(), O_RDWR | O_CLOEXEC);
  if (table->fd_ < 0) return nullptr;
  *is_used = ::flock(table->fd_, LOCK_EX | LOCK_NB) != 0;
  // With this lock nobody recreates the table while it is mapped here, and it is not mapped while
  // somebody does.
  if (*is_used && ::flock(table->fd_, LOCK_SH | LOCK_NB) != 0) return nullptr;
  std::ifstream list(folder + "/files");
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    File file;
    fields >> file.bytes;
    std::getline(fields >> std::ws, file.name);
    table->files_.push_back(file);
  }
  if (!table->Read()) return nullptr;
  table->Map();
  return table;
}

ChunkTable::~ChunkTable() { Close(); }

// Whether the file is a table of these files; adopts its chunk size.
bool ChunkTable::Read() {
  Header header{};
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || ::pread(fd_, &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.chunk_bytes == 0)
    return false;
  const std::string list = ListOf(files_);
  if (header.files != Xxh3OfBlock(list.data(), list.size())) return false;
  first_chunks_ = {0};
  for (const File& file : files_)
    first_chunks_.push_back(first_chunks_.back() + Chunks(file.bytes, header.chunk_bytes));
  chunk_bytes_ = header.chunk_bytes;
  num_chunks_ = header.num_chunks;
  map_bytes_ = kHeaderBytes + num_chunks_ * sizeof(Chunk);
  return num_chunks_ == first_chunks_.back() && static_cast<uint64_t>(info.st_size) == map_bytes_;
}

void ChunkTable::Create(const std::vector<File>& files, uint64_t chunk_bytes) {
  const std::string list = ListOf(files);
  Header header{
      .chunk_bytes = chunk_bytes, .num_chunks = 0, .files = Xxh3OfBlock(list.data(), list.size())};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  for (const File& file : files) header.num_chunks += Chunks(file.bytes, chunk_bytes);
  if (num_chunks_ > 0 && Read()) {
    Map();
    for (uint64_t i = 0; i < num_chunks_; ++i)
      if (chunks_[i].is_there()) dropped_bytes_ += PlaceOf(i).end - PlaceOf(i).begin;
    ::munmap(std::exchange(map_, nullptr), map_bytes_);
  }
  for (const File& file : files) ::unlink((folder_ + "/" + file.name).c_str());
  WriteSmallFile(folder_ + "/files", list);
  const off_t bytes = static_cast<off_t>(kHeaderBytes + header.num_chunks * sizeof(Chunk));
  if (::ftruncate(fd_, 0) != 0 || ::ftruncate(fd_, bytes) != 0 ||
      ::pwrite(fd_, &header, sizeof header, 0) != sizeof header)
    FailErrno(errno, fmt::format("cannot write {}/state", folder_));
}

void ChunkTable::Map() {
  map_ = ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    FailErrno(errno, fmt::format("cannot map {}/state", folder_));
  }
  chunks_ = reinterpret_cast<Chunk*>(static_cast<char*>(map_) + kHeaderBytes);
}

ChunkTable::OpenFile::OpenFile(const std::string& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}

ChunkTable::OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

void ChunkTable::CreateFiles() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string path = PathOf(i);
    const off_t bytes = static_cast<off_t>(files_[i].bytes);
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && info.st_size == bytes) continue;
    CreateDirectories(ParentDirectory(path));
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT, 0666);
    const bool created = fd >= 0 && ::ftruncate(fd, bytes) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!created) FailErrno(error, "cannot create " + path);
  }
}

ChunkTable::Place ChunkTable::PlaceOf(uint64_t chunk) const {
  const auto next = std::upper_bound(first_chunks_.begin(), first_chunks_.end(), chunk);
  const size_t file = static_cast<size_t>(next - first_chunks_.begin()) - 1;
  const uint64_t begin = (chunk - first_chunks_[file]) * chunk_bytes_;
  return {file, begin, std::min(begin + chunk_bytes_, files_[file].bytes)};
}

void ChunkTable::Evict(uint64_t chunk) const {
  const Place place = PlaceOf(chunk);
  // Before the bytes are freed, so that no reader takes what remains for data.
  chunks_[chunk].version.fetch_add(1, std::memory_order_seq_cst);
  FreeBytes(place);
}

void ChunkTable::FreeBytes(const Place& place) const {
  const OpenFile file(PathOf(place.file));
  if (file.fd() < 0 && errno == ENOENT) return;  // its folder was removed
  if (file.fd() < 0 || ::fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   static_cast<off_t>(place.begin),
                                   static_cast<off_t>(place.end - place.begin)) != 0)
    FailErrno(errno, "cannot free a part of " + PathOf(place.file));
}

std::unique_ptr<ChunkTable::Lock> ChunkTable::Lock::Take(const ChunkTable& table, uint64_t chunk,
                                                         bool wait) {
  // These locks belong to an open file description, so every taker opens the file anew.
  const std::string path = table.folder() + "/state";
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) FailErrno(errno, "cannot open " + path);
  std::unique_ptr<Lock> lock(new Lock(fd));
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(chunk);
  range.l_len = 1;
  while (::fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range) != 0) {
    if (errno == EINTR) continue;
    if (!wait && (errno == EAGAIN || errno == EACCES)) return nullptr;
    FailErrno(errno, "cannot lock a part of " + path);
  }
  return lock;
}

ChunkTable::Lock::~Lock() { ::close(fd_); }

}  // namespace renzan
