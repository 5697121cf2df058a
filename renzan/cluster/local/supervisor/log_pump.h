#pragma once

// Carries what workers print from their pipes into their logs, on a thread of its own, so that a
// slow disk delays nobody who has something else to do. A worker that prints faster than the disk
// takes it waits, as it would if it wrote the file itself.

#include <cstdint>
#include <thread>
#include <vector>

#include "renzan/cluster/local/supervisor/log_writer.h"

namespace renzan::cluster::local {

class LogPump {
 public:
  LogPump();
  // Reads what is in the pipes and ends.
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Before Start(). Returns the end to be written to: the caller closes it once the worker has it.
  // Throws Error kOsError.
  int Add(LogWriter log);
  void Start();
  // Waits until all that lies in the pipes is in the logs. Call it when nobody writes any more.
  void Finish();

  // After Finish(): what no disk took, of all workers together.
  int64_t dropped_bytes() const;

 private:
  struct Stream {
    int fd;  // -1: it has ended
    LogWriter log;
  };

  void Run();
  // False when there is nothing at this moment.
  bool Carry(Stream& stream);

  std::vector<Stream> streams_;
  std::vector<char> buffer_;
  int wake_[2] = {-1, -1};  // its closed end tells the thread to finish
  std::thread thread_;
};

}  // namespace renzan::cluster::local
