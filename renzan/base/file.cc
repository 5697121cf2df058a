#include "renzan/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = 1 << 20;

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// A rename is durable only when the directory that holds the name is.
void SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void WriteAll(int fd, const char* data, size_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t wrote = ::write(fd, data, bytes);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      FailErrno(errno, fmt::format("cannot write {}", path));
    }
    data += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
}

}  // namespace

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const int error = errno;
    Fail(ErrorCode::kCantCreate, "cannot create {}: {}", path_,
         std::error_code(error, std::generic_category()).message());
  }
  buffer_.reserve(kBufferBytes);
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  struct stat info {};
  const bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  ::close(fd_);
  if (regular) ::unlink(path_.c_str());
}

void FileWriter::Write(const void* data, size_t bytes) {
  bytes_written_ += bytes;
  if (buffer_.size() + bytes <= kBufferBytes) {
    buffer_.append(static_cast<const char*>(data), bytes);
    return;
  }
  Flush();
  if (bytes >= kBufferBytes) {
    WriteAll(fd_, static_cast<const char*>(data), bytes, path_);
  } else {
    buffer_.append(static_cast<const char*>(data), bytes);
  }
}

void FileWriter::WriteAt(uint64_t offset, const void* data, size_t bytes) {
  Flush();
  const ssize_t wrote = ::pwrite(fd_, data, bytes, static_cast<off_t>(offset));
  if (wrote != static_cast<ssize_t>(bytes))
    FailErrno(wrote < 0 ? errno : EIO, fmt::format("cannot write {}", path_));
}

void FileWriter::Flush() {
  WriteAll(fd_, buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
}

void FileWriter::Close() {
  Flush();
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    FailErrno(errno, fmt::format("cannot write {}", path_));
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) FailErrno(errno, fmt::format("cannot write {}", path_));
}

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) FailErrno(errno, fmt::format("cannot read {}", path));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    Fail(ErrorCode::kNoInput, "cannot read {}: not a regular file", path);
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      FailErrno(error, fmt::format("cannot map {} ({} bytes)", path, size_));
    }
    data_ = static_cast<const std::byte*>(address);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string ReadFile(const std::string& path) {
  const MappedFile file(path);
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.size());
}

void WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string beside = fmt::format("{}.tmp.{}", path, ::getpid());
  FileWriter writer(beside);
  writer.Write(content);
  writer.Close();
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    FailErrno(error, fmt::format("cannot write {}", path));
  }
  SyncDirectory(ParentOf(path));
}

std::string StagedDirectory::StagingPath(const std::string& path) {
  const fs::path target(WithoutTrailingSlash(path));
  return (target.parent_path() / fmt::format(".{}.partial", target.filename().string())).string();
}

StagedDirectory::StagedDirectory(std::string path)
    : path_(WithoutTrailingSlash(std::move(path))), staging_(StagingPath(path_)) {
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !fs::is_empty(path_, ignored))
    Fail(ErrorCode::kCantCreate, "{} exists already: choose another name or remove it", path_);
  fs::remove_all(staging_, ignored);
  CreateDirectories(staging_);
}

StagedDirectory::~StagedDirectory() {
  if (committed_) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void StagedDirectory::Commit() {
  SyncDirectory(staging_);
  if (::rename(staging_.c_str(), path_.c_str()) != 0)
    FailErrno(errno, fmt::format("cannot rename {} to {}", staging_, path_));
  committed_ = true;
  SyncDirectory(ParentOf(path_));
}

std::string EscapeName(std::string_view name) {
  std::string escaped;
  for (const unsigned char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-';
    escaped += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return escaped;
}

void CreateDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) Fail(ErrorCode::kCantCreate, "cannot create directory {}: {}", path, error.message());
}

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/renzan.XXXXXX", parent != nullptr ? parent : "/tmp");
  if (::mkdtemp(pattern.data()) == nullptr)
    FailErrno(errno, fmt::format("cannot create {}", pattern));
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace renzan
