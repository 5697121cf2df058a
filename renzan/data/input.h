#pragma once

// Input files as one stream of bytes or lines: plain, gzip or zstd (told by their first bytes, not
// by their name), several files in order, "-" for standard input. Memory does not grow with the
// input. A missing file is an Error kNoInput; a truncated or corrupt one is kData and names the
// file. Objects belong to one thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

// Asked now and then by long work, also while it waits for input: true ends it with kTempFail.
using StopFunction = std::function<bool()>;
void ThrowIfStopped(const StopFunction& stop);

// Decompressed bytes of one file.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  // Up to `bytes` bytes; 0 at the end.
  virtual size_t Read(char* out, size_t bytes) = 0;
  // Bytes taken from the file itself so far: compressed ones.
  virtual uint64_t raw_bytes() const = 0;
};

std::unique_ptr<ByteReader> OpenInput(const std::string& path, StopFunction stop = nullptr);

// Lines of several files. "\n" and "\r\n" end a line, the end of a file does too; a byte order mark
// of UTF-8 at the start of a file is dropped.
class LineReader {
 public:
  // Throws kNoInput here, before any work, if a file is missing; kUsage if "-" comes twice.
  explicit LineReader(std::vector<std::string> paths, StopFunction stop = nullptr);

  // The next line without its end, valid until the next call; false after the last one.
  bool Next(std::string_view* line);

  // Of the line that Next gave last: its number from 1, and its file ("<stdin>" for "-") by its
  // index in `paths`.
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
