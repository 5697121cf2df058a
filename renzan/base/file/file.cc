#include "renzan/base/file/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/bus_error.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/file/sync_directory.h"
#include "renzan/base/sha256.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = 1 << 20, kSmallReadBytes = 4096;
// Writes of at least this size bypass the buffer, which would only copy them once more.
constexpr size_t kDirectBytes = 1 << 17;
constexpr uint64_t kWriteBackBytes = 8 << 20;

// Closes a read-only descriptor.
struct Closer {
  const int fd;
  ~Closer() { ::close(fd); }
};

std::string ErrnoText(int errno_value) { return std::generic_category().message(errno_value); }

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The name that a staged file (staged.h) will have: "out/ids.npy" of ".out.partial/ids.npy". People
// have given that one.
std::string OutputName(const std::string& path) {
  constexpr std::string_view kPartial = ".partial";
  fs::path output;
  for (const fs::path& part : fs::path(path)) {
    const std::string name = part.string();
    const bool is_staged =
        name.size() > 1 + kPartial.size() && name.starts_with('.') && name.ends_with(kPartial);
    output /= is_staged ? name.substr(1, name.size() - 1 - kPartial.size()) : name;
  }
  return output.string();
}

}  // namespace

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  buffer_.reserve(kBufferBytes);
  fd_ = FileSystem::Get().OpenForWriting(path_);
  if (fd_ < 0) {
    const int error = errno;
    Fail(ErrorCode::kCantCreate, "cannot create {}: {}", OutputName(path_), ErrnoText(error));
  }
  struct stat info {};
  regular_ = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
}

FileWriter::~FileWriter() {
  if (complete_) return;
  if (fd_ >= 0) FileSystem::Get().Close(fd_);
  if (regular_) FileSystem::Get().Unlink(path_);
}

void FileWriter::Write(const void* data, size_t bytes) {
  CheckUsable();
  bytes_written_ += bytes;
  if (bytes >= kDirectBytes || buffer_.size() + bytes > kBufferBytes) Flush();
  if (bytes >= kDirectBytes) {
    WriteOut(static_cast<const char*>(data), bytes);
  } else {
    buffer_.append(static_cast<const char*>(data), bytes);
  }
}

void FileWriter::WriteAt(uint64_t offset, const void* data, size_t bytes) {
  CheckUsable();
  Flush();
  const char* rest = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = FileSystem::Get().WriteAt(fd_, rest, bytes, offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) FailWith(wrote < 0 ? errno : EIO);
    rest += wrote;
    offset += static_cast<uint64_t>(wrote);
    bytes -= static_cast<size_t>(wrote);
  }
}

void FileWriter::Flush() {
  WriteOut(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void FileWriter::WriteOut(const char* data, size_t bytes) {
  FileSystem& file_system = FileSystem::Get();
  while (bytes > 0) {
    const uint64_t until_write_back = write_back_from_ + kWriteBackBytes - written_out_;
    const ssize_t wrote = file_system.Write(fd_, data, std::min<uint64_t>(bytes, until_write_back));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) FailWith(wrote < 0 ? errno : EIO);
    data += wrote;
    bytes -= static_cast<size_t>(wrote);
    written_out_ += static_cast<uint64_t>(wrote);
    if (written_out_ - write_back_from_ < kWriteBackBytes) continue;
    // Only a hint, and not supported everywhere: write errors show in Close().
    if (regular_) file_system.StartWriteBack(fd_, write_back_from_, kWriteBackBytes);
    write_back_from_ = written_out_;
  }
}

void FileWriter::CheckUsable() const {
  CHECK_MSG(!complete_, "{} is already closed", path_);
  // The kernel reports a lost page only once: a second fsync would succeed.
  if (failed_)
    Fail(ErrorCode::kIo, "cannot write {}: an earlier write to it failed", OutputName(path_));
}

void FileWriter::FailWith(int errno_value) {
  failed_ = true;
  FailErrno(errno_value, fmt::format("cannot write {}", OutputName(path_)));
}

void FileWriter::Close() {
  CheckUsable();
  Flush();
  while (FileSystem::Get().Sync(fd_) != 0) {
    if (errno == EINTR) continue;
    if (!regular_ && (errno == EINVAL || errno == EROFS)) break;  // pipes and devices have no fsync
    FailWith(errno);
  }
  // Linux closes the descriptor even if close() is interrupted.
  const int fd = std::exchange(fd_, -1);
  if (FileSystem::Get().Close(fd) != 0 && errno != EINTR) FailWith(errno);
  complete_ = true;
}

MappedFile::MappedFile(const std::string& path) {
  const int fd = FileSystem::Get().OpenForReading(path);
  if (fd < 0) FailToRead(errno, path);
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
    RegisterMap(data_, size_, path);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  UnregisterMap(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string ReadFile(const std::string& path) {
  std::string text;
  ReadInPieces(path, [&](std::span<const char> piece) { text.append(piece.data(), piece.size()); });
  return text;
}

void ReadInPieces(const std::string& path,
                  const std::function<void(std::span<const char> piece)>& take) {
  const int fd = FileSystem::Get().OpenForReading(path);
  if (fd < 0) FailToRead(errno, path);
  const Closer closer{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    Fail(ErrorCode::kNoInput, "cannot read {}: not a regular file", path);
  // One byte more than the file's size, so that one read of a small file also finds its end.
  const auto size = static_cast<size_t>(info.st_size);
  std::vector<char> buffer(std::clamp(size + 1, kSmallReadBytes, kBufferBytes));
  for (uint64_t offset = 0;;) {
    const ssize_t got = FileSystem::Get().ReadFully(fd, path, buffer.data(), buffer.size(), offset);
    if (got < 0) FailToRead(errno, path);
    if (got > 0) take({buffer.data(), static_cast<size_t>(got)});
    if (static_cast<size_t>(got) < buffer.size()) return;
    offset += static_cast<uint64_t>(got);
  }
}

void WriteFileAtomically(const std::string& path, std::string_view content, unsigned mode) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  FileWriter writer(temporary);
  if (mode != 0 && ::chmod(temporary.c_str(), mode) != 0)
    FailErrno(errno, "cannot change the mode of " + temporary);
  writer.Write(content);
  writer.Close();
  if (FileSystem::Get().Rename(temporary, path) != 0) {
    const int error = errno;
    FileSystem::Get().Unlink(temporary);
    FailErrno(error, fmt::format("cannot write {}", path));
  }
  SyncDirectory(ParentDirectory(path));
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

std::string UnescapeName(std::string_view escaped) {
  std::string name;
  for (size_t i = 0; i < escaped.size(); ++i) {
    unsigned char byte = 0;
    if (escaped[i] == '%' && i + 3 <= escaped.size() &&
        std::from_chars(&escaped[i + 1], &escaped[i] + 3, byte, 16).ptr == &escaped[i] + 3) {
      name += static_cast<char>(byte);
      i += 2;
    } else {
      name += escaped[i];
    }
  }
  return name;
}

std::string BoundedFileName(const std::string& escaped, size_t max_bytes) {
  if (escaped.size() <= max_bytes) return escaped;
  constexpr size_t kDigits = 16;
  const std::string end = "~" + Sha256Hex(escaped).substr(0, kDigits);
  CHECK(max_bytes >= end.size());
  std::string kept = escaped.substr(0, max_bytes - end.size());
  // Not a part of "%XX".
  const size_t percent = kept.rfind('%');
  if (percent != std::string::npos && percent + 3 > kept.size()) kept.resize(percent);
  return kept + end;
}

std::string ParentDirectory(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

void CreateDirectories(const std::string& path) {
  const std::string made = WithoutTrailingSlash(path);
  std::error_code ignored;
  if (fs::is_directory(made, ignored)) return;
  const std::string parent = ParentDirectory(made);
  if (parent != made) CreateDirectories(parent);
  if (FileSystem::Get().MakeDirectory(made) != 0) {
    const int error = errno;
    // Another process may have created it; whether it synced the name is unknown.
    if (error != EEXIST || !fs::is_directory(made, ignored))
      Fail(ErrorCode::kCantCreate, "cannot create directory {}: {}", made, ErrnoText(error));
  }
  SyncDirectory(parent);
}

bool FileExists(const std::string& path) {
  struct stat info {};
  return FileSystem::Get().Stat(path, &info) == 0;
}

uint64_t FileSize(const std::string& path) {
  struct stat info {};
  if (FileSystem::Get().Stat(path, &info) != 0) FailToRead(errno, path);
  return static_cast<uint64_t>(info.st_size);
}

bool IsMissing(const std::string& path) {
  try {
    FileSize(path);
    return false;
  } catch (const Error& error) {
    if (!error.is_missing_file()) throw;
    return true;
  }
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
