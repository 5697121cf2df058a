#pragma once

// Files: whole reads, memory maps, and atomic writes that survive a power loss: when a function
// here returns without an Error, its result is on disk. Every failure is an Error that names the
// path. Objects are not thread-safe; functions are. Writes go through FileSystem (file_system.h),
// where tests make them fail.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace renzan {

// A buffered output file, removed by the destructor unless Close() succeeded. Write-back starts
// early, so that Close() has little left to wait for. After an Error all further calls fail too.
// Close() makes the bytes durable, but not the file's name in its directory; WriteFileAtomically
// and staged.h do.
class FileWriter {
 public:
  // Creates or truncates `path`.
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void Write(const void* data, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // Overwrites bytes already written (a header whose counts are known only at the end).
  void WriteAt(uint64_t offset, const void* data, size_t bytes);

  // Flushes, fsyncs and closes. A full disk is an Error kIo, here or in Write.
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
  uint64_t written_out_ = 0;      // bytes handed to the kernel: all but those in buffer_
  uint64_t write_back_from_ = 0;  // write-back has been started up to here
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

// Reads a file once, front to back, in pieces of at most 1 MiB, with read() rather than a map: a
// read failure is an Error (kNoInput, kIo), not a signal.
void ReadInPieces(const std::string& path,
                  const std::function<void(std::span<const char> piece)>& take);

// Writes a temporary file next to `path`, fsyncs it and renames it over `path`: readers see the old
// content or the new, and the new content is durable when this returns. `mode`: its permissions
// from the beginning, such as 0600; 0: those of the umask.
void WriteFileAtomically(const std::string& path, std::string_view content, unsigned mode = 0);

// Makes a string usable in a file name: letters, digits, _ and - stay, other bytes become %XX.
std::string EscapeName(std::string_view name);
// The name that EscapeName() has escaped.
std::string UnescapeName(std::string_view escaped);

// An escaped name as part of a file's name, which file systems limit to 255 bytes: one of more than
// `max_bytes` is cut, and ends in `~` and the first 16 hexadecimal digits of its SHA-256. No
// escaped name holds a `~`, so different names stay different.
std::string BoundedFileName(const std::string& escaped, size_t max_bytes);

// "a/b" of "a/b/c", "." of "c"
std::string ParentDirectory(const std::string& path);

// Durably creates the missing directories of `path`. Throws Error kCantCreate, or kIo if a name
// cannot be made durable.
void CreateDirectories(const std::string& path);

// False also for a file that cannot be reached.
bool FileExists(const std::string& path);
// Whether there is certainly no such file. Throws Error kNoInput or kIo if that cannot be
// determined, so that what cannot be reached now is not taken for missing.
bool IsMissing(const std::string& path);
// Throws Error kNoInput or kIo.
uint64_t FileSize(const std::string& path);

// A new directory under $TMPDIR or /tmp, removed with its contents by the destructor. It need not
// be durable, so it does not go through FileSystem.
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
