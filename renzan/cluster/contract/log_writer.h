#pragma once

// Writes a worker's output to a rotated file. A full disk or any other write error never stops the
// worker: its output is dropped and counted, and the log mentions the gap once writing works again.
// What was in files that had to go is counted, too (DroppedHead). Not thread-safe.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan::cluster {

// How much of the beginning of a log is no longer there.
struct DroppedHead {
  int64_t lines = 0, bytes = 0;
  bool operator==(const DroppedHead&) const = default;
};
// The file beside the log `path` that says so; there is none as long as nothing was dropped.
std::string DroppedHeadFile(const std::string& path);
// The content of that file; none if it is not one.
std::optional<DroppedHead> ParseDroppedHead(std::string_view text);

class LogWriter {
 public:
  // Appends to `path`; when it reaches `max_bytes` it is renamed to `path`.1, that one to `path`.2
  // and so on, `files` in all; the oldest is dropped. Files get mode 0600 and, if we are root, the
  // owner `uid`. Cannot fail.
  LogWriter(std::string path, int64_t max_bytes, int files, uid_t uid, gid_t gid);
  ~LogWriter();
  LogWriter(LogWriter&& other) noexcept;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Splits a line between two files only if it does not fit into one.
  void Write(std::string_view text);

  // Bytes that could not be written, in all.
  int64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  bool Open();
  void Close();
  // False if the file could not be renamed.
  bool Rotate();
  void NoteDropped(const DroppedHead& more);
  // The prefix of `text` that goes into the current file; empty if it is full.
  std::string_view PartForThisFile(std::string_view text) const;
  void Append(std::string_view text);
  void Drop(size_t bytes);
  // Writes to the log how much was dropped; false if that fails.
  bool ReportGap();

  std::string path_;
  int64_t max_bytes_;
  int files_;
  uid_t uid_;
  gid_t gid_;
  int fd_ = -1;
  int64_t size_ = 0;
  int64_t dropped_bytes_ = 0;
  DroppedHead head_;
  int64_t unreported_bytes_ = 0;  // dropped since the last gap was reported
  bool at_line_start_ = true;
  int error_ = 0;  // the last errno
};

}  // namespace renzan::cluster
