#pragma once

// A worker's output as one stream: the rotated files, oldest first, and the current one. Where
// output is no longer there, because older files were dropped, a remark says so. The job's user
// owns the files (untrusted_file.h). For one thread.

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "renzan/cluster/contract/log_writer.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/output_frames.h"

namespace renzan::cluster::local {

struct LogRequest {
  std::string jobs_dir;  // STATE/jobs
  JobId job = 0;
  int attempt = 0;
  int worker = 0;
  uid_t owner = 0;
  bool follow = false;
  bool later_attempts = false;  // also follow attempts that start later
  int64_t tail = -1;            // lines from the end; negative: everything
  int64_t from = 0;             // offset in the output of the attempt; without `tail`
  bool framed = false;          // see cluster/spec/output_frames.h
};

class LogStream {
 public:
  struct JobNow {
    int attempts = 0;    // started so far
    bool ended = false;  // the job or the requested attempt has ended
  };
  // `job_now` is called when there is nothing to read; unset: nobody knows, the daemon is ending.
  // The stream ends then, and when the client closes `client_fd` or `stop_fd` becomes readable.
  // Frames say whether the output is complete.
  LogStream(LogRequest request, std::function<std::optional<JobNow>()> job_now, int client_fd,
            int stop_fd);
  ~LogStream();
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  // Whether there is any output yet.
  bool found() const { return !files_.empty(); }
  // Blocks until there is output. Returns 0 at the end.
  size_t Read(char* data, size_t max);

 private:
  std::string NameOf(int rotated) const;
  void OpenFiles();
  std::optional<DroppedHead> Dropped() const;
  void Close();
  void Tail(int64_t lines);
  void SkipTo(int64_t offset);
  void OpenRotated();
  bool Wait();
  size_t ReadText(char* data, size_t max);

  LogRequest request_;
  std::function<std::optional<JobNow>()> job_now_;
  int client_fd_, stop_fd_, inotify_fd_;
  struct File {
    int fd;
    std::string missing;  // a remark that comes first: what is no longer there before it
    int64_t at = 0;       // offset of the next byte in the output of the attempt

    int64_t End() const;
  };
  std::deque<File> files_;  // oldest first
  bool ended_ = false;      // no output after what is in the files
  bool next_ = false;       // the same, but the next attempt has started
  // Of the text that was read last.
  spec::OutputPlace place_;
  bool is_remark_ = false;
  bool begun_ = false;     // a frame has said where the stream begins
  bool complete_ = false;  // a frame has said that there is no more
};

}  // namespace renzan::cluster::local
