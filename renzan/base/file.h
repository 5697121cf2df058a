#pragma once

// Files: whole reads, memory maps, and writes that appear whole or not at all, also after a loss of
// power: what a function here has finished without an Error is on the disk. Every failure is an
// Error that names the path. Objects are not thread-safe; functions are. Writes go through
// FileSystem (file_system.h), where tests make them fail.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace renzan {

// A file open for writing, buffered; removed again by the destructor unless Close() succeeded. The
// disk starts writing early, so that Close() has little left to wait for. After an Error the file
// cannot be completed: all further calls fail too. Close() makes the bytes durable, but not the
// file's name in its directory: WriteFileAtomically and StagedDirectory do.
class FileWriter {
 public:
  // Creates or truncates `path`.
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void Write(const void* data, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // Overwrites bytes that were already written (a header whose counts are known only at the end).
  void WriteAt(uint64_t offset, const void* data, size_t bytes);

  // Flushes, fsyncs and closes. A full disk shows here or in Write, as an Error with code kIo.
  void Close();

  const std::string& path() const { return path_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  void Flush();
  void WriteOut(const char* data, size_t bytes);
  void CheckUsable() const;
  [[noreturn]] void FailWith(int errno_value);

  std::string path_;
  std::string buffer_;
  uint64_t bytes_written_ = 0;
  uint64_t written_out_ = 0;      // bytes that the kernel has: all but those in buffer_
  uint64_t write_back_from_ = 0;  // up to here the disk has been asked to write
  int fd_ = -1;
  bool regular_ = false;  // not a pipe or a device
  bool failed_ = false;
  bool complete_ = false;
};

// Read-only memory map of a whole file. An empty file maps to an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

std::string ReadFile(const std::string& path);

// Reads a file once, from front to back, a piece of at most 1 MiB at a time, through read() and not
// a map: what the disk cannot read is an Error (kNoInput, kIo) and not a signal.
void ReadInPieces(const std::string& path,
                  const std::function<void(std::span<const char> piece)>& take);

// Writes beside, fsyncs, renames over `path`: a reader sees the old content or the new, and when
// this returns the new content is durable.
void WriteFileAtomically(const std::string& path, std::string_view content);

// A directory that appears under `path` whole or not at all: fill `staging()`, then Commit().
// Refuses (kCantCreate) a `path` that exists, unless it is an empty directory. What an interrupted
// writer left behind is removed by the next one. All files in staging() must be closed FileWriters
// (or as durable as those); Commit() makes the names in it and below it durable, then its own.
class StagedDirectory {
 public:
  explicit StagedDirectory(std::string path);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& staging() const { return staging_; }
  void Commit();

  // Where staging() is for `path`, for other processes that help to fill it.
  static std::string StagingPath(const std::string& path);

 private:
  std::string path_;
  std::string staging_;
  bool committed_ = false;
};

// A name as it may stand in a file name: letters, digits, _ and - stay, other bytes become %XX.
std::string EscapeName(std::string_view name);

// Makes those directories of `path` that do not exist yet, durably. Throws Error kCantCreate, or
// kIo where a name could not be made durable.
void CreateDirectories(const std::string& path);
bool FileExists(const std::string& path);

// A fresh directory under $TMPDIR or /tmp, removed with all it holds by the destructor. Nothing
// about it needs to be durable, so it does not go through FileSystem.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace renzan
