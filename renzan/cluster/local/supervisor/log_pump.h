#pragma once

// Copies workers' output from their pipes into their logs, on a thread of its own, so that a slow
// disk does not delay the supervisor. A worker that prints faster than the disk can write is
// blocked, as if it wrote the file itself.

#include <cstdint>
#include <list>

#include "renzan/base/process/pipe_pump.h"
#include "renzan/cluster/contract/log_writer.h"

namespace renzan::cluster::local {

class LogPump {
 public:
  // Before Start(). Returns the pipe's write end, which the caller closes once the worker has it.
  // Throws Error kOsError.
  Descriptor Add(LogWriter log);
  void Start() { pump_.Start(); }
  // Waits until everything in the pipes is in the logs. Call it when all writers have ended.
  void Finish() { pump_.Finish(); }

  // After Finish(): output of all workers that could not be written.
  int64_t dropped_bytes() const;

 private:
  std::list<LogWriter> logs_;  // at fixed addresses
  PipePump pump_;              // after the logs, which it uses to its end
};

}  // namespace renzan::cluster::local
