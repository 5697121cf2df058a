#pragma once

// Writes what a worker prints into a file that is rotated. A disk that is full, or refuses in
// another way, never stops the worker: what it prints meanwhile is dropped, counted, and the log
// says so once the disk takes writes again. Not thread-safe.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace renzan::cluster::local {

class LogWriter {
 public:
  // Appends to `path`; at `max_bytes` it becomes `path`.1, that `path`.2 and so on, `files` in all.
  // Files are made with mode 0600 for user `uid` (when we are root). Cannot fail.
  LogWriter(std::string path, int64_t max_bytes, int files, uid_t uid, gid_t gid);
  ~LogWriter();
  LogWriter(LogWriter&& other) noexcept;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // A line is split between two files only when it is longer than the room that a write finds.
  void Write(std::string_view text);

  // Bytes that could not be written, in all.
  int64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  bool Open();
  void Close();
  // False when the file could not be put aside.
  bool Rotate();
  // The beginning of `text` that goes into the file at hand; empty when it is full.
  std::string_view PartForThisFile(std::string_view text) const;
  void Append(std::string_view text);
  void Drop(size_t bytes);
  // Says in the log what was dropped; false when that does not work yet.
  bool ReportGap();

  std::string path_;
  int64_t max_bytes_;
  int files_;
  uid_t uid_;
  gid_t gid_;
  int fd_ = -1;
  int64_t size_ = 0;
  int64_t dropped_bytes_ = 0;
  int64_t unreported_bytes_ = 0;  // dropped since the log last said so
  bool at_line_start_ = true;
  int error_ = 0;  // why
};

}  // namespace renzan::cluster::local
