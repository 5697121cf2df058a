#pragma once

// A worker's output as one stream: the rotated files, oldest first, and the current one. Where
// output is no longer there, because older files were dropped, a line says so. The job's user owns
// the files (untrusted_file.h). For one thread.

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "renzan/cluster/contract/log_writer.h"
#include "renzan/cluster/core/snapshot.h"

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
};

class LogStream {
 public:
  struct JobNow {
    int attempts = 0;    // started so far
    bool ended = false;  // the job or the requested attempt has ended
  };
  // `job_now` is called when there is nothing to read. The stream ends when the client closes
  // `client_fd` or `stop_fd` becomes readable.
  LogStream(LogRequest request, std::function<JobNow()> job_now, int client_fd, int stop_fd);
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
  void OpenRotated();
  bool Wait();

  LogRequest request_;
  std::function<JobNow()> job_now_;
  int client_fd_, stop_fd_, inotify_fd_;
  struct File {
    int fd;
    std::string missing;  // a line that comes first: what is no longer there before it
  };
  std::deque<File> files_;  // oldest first
  bool ended_ = false;      // no output after what is in the files
};

}  // namespace renzan::cluster::local
