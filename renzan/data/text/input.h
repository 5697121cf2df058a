#pragma once

// Input files as one stream of bytes or lines: plain, gzip or zstd (detected by their first bytes,
// not their name; other formats are refused with how to convert them), several files in order, "-"
// for standard input. Uses constant memory. A missing file is an Error kNoInput; a truncated or
// corrupt one is kData and names the file. Not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

// Polled by long-running work, also while it waits for input: true ends it with kTempFail.
using StopFunction = std::function<bool()>;
void ThrowIfStopped(const StopFunction& stop);

// Decompressed bytes of one file.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  // Up to `bytes` bytes; 0 at the end.
  virtual size_t Read(char* out, size_t bytes) = 0;
  // Bytes taken from the file itself so far: compressed bytes for a compressed file.
  virtual uint64_t raw_bytes() const = 0;
};

std::unique_ptr<ByteReader> OpenInput(const std::string& path, StopFunction stop = nullptr);

// The lines of several files. "\n", "\r\n" and the end of a file end a line; a UTF-8 byte order
// mark at the start of a file is dropped.
class LineReader {
 public:
  // Throws kNoInput, before reading anything, if a file is missing; kUsage if "-" is given twice.
  explicit LineReader(std::vector<std::string> paths, StopFunction stop = nullptr);

  // The next line without its end, valid until the next call; false after the last one.
  bool Next(std::string_view* line);

  // Of the last line returned by Next: its number from 1, and its file ("<stdin>" for "-") as an
  // index into `paths`.
  int64_t line_number() const { return line_number_; }
  size_t file_index() const { return file_index_; }
  const std::string& file() const { return names_[file_index_]; }
  // True if the next line is in the same file.
  bool MoreInFile();

  uint64_t text_bytes() const { return text_bytes_; }
  uint64_t raw_bytes() const;
  // Sum of the files' sizes; 0 if not known.
  uint64_t total_raw_bytes() const { return total_raw_bytes_; }

 private:
  bool Fill();
  bool OpenNextFile();

  std::vector<std::string> paths_, names_;
  StopFunction stop_;
  std::unique_ptr<ByteReader> reader_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  bool file_ended_ = true;
  size_t next_file_ = 0, file_index_ = 0;
  int64_t line_number_ = 0;
  uint64_t text_bytes_ = 0, raw_bytes_before_ = 0, total_raw_bytes_ = 0;
};

}  // namespace renzan
