#pragma once

// Copies workers' output from their pipes into their logs, on a thread of its own, so that a slow
// disk does not delay the supervisor. A worker that prints faster than the disk can write is
// blocked, as if it wrote the file itself.

#include <cstdint>
#include <thread>
#include <vector>

#include "renzan/base/process/pipe.h"
#include "renzan/cluster/local/supervisor/log_writer.h"

namespace renzan::cluster::local {

class LogPump {
 public:
  LogPump();
  // Calls Finish().
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Before Start(). Returns the pipe's write end, which the caller closes once the worker has it.
  // Throws Error kOsError.
  Descriptor Add(LogWriter log);
  void Start();
  // Waits until everything in the pipes is in the logs. Call it when all writers have ended.
  void Finish();

  // After Finish(): output of all workers that could not be written.
  int64_t dropped_bytes() const;

 private:
  struct Stream {
    Descriptor pipe;  // none: ended
    LogWriter log;
  };

  void Run();
  // False if there is nothing to read now.
  bool Copy(Stream& stream);

  std::vector<Stream> streams_;
  std::vector<char> buffer_;
  Pipe wake_;  // closing the write end makes the thread finish
  std::thread thread_;
};

}  // namespace renzan::cluster::local
