#pragma once

// A worker's output as one stream: the rotated files from the oldest on, and what is being written.
// The files lie in directories of the job's user (untrusted_file.h). For one thread.

#include <sys/types.h>

#include <deque>
#include <functional>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::local {

struct LogRequest {
  std::string jobs_dir;  // STATE/jobs
  JobId job = 0;
  int attempt = 0;
  int worker = 0;
  uid_t owner = 0;
  bool follow = false;
  bool later_attempts = false;  // those that come while it follows, too
  int64_t tail = -1;            // so many lines from the end; negative: everything
};

class LogStream {
 public:
  struct JobNow {
    int attempts = 0;    // begun so far
    bool ended = false;  // nothing more comes, of the job or of the attempt asked for
  };
  // `job_now` is asked when there is nothing to read. `client_fd` is watched for its end, `stop_fd`
  // for the server's.
  LogStream(LogRequest request, std::function<JobNow()> job_now, int client_fd, int stop_fd);
  ~LogStream();
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  // Whether there is any output now.
  bool found() const { return !files_.empty(); }
  // Blocks until there is something. 0: the end.
  size_t Read(char* data, size_t max);

 private:
  std::string NameOf(int rotated) const;
  void OpenFiles();
  void Tail(int64_t lines);
  void OpenRotated();
  bool Wait();

  LogRequest request_;
  std::function<JobNow()> job_now_;
  int client_fd_, stop_fd_, inotify_fd_;
  std::deque<int> files_;  // the oldest first
  bool last_look_ = false;
};

}  // namespace renzan::cluster::local
