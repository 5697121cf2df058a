#pragma once

// Writes status.json in a background thread, so that training never waits for the disk. While a
// write is in progress, only the newest status is kept. Used by one thread.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "renzan/base/background_task.h"
#include "renzan/base/error.h"
#include "renzan/observe/status_file.h"

namespace renzan {

class StatusWriter {
 public:
  // Throws Error kOsError when the thread cannot be started.
  explicit StatusWriter(std::string path);
  // Waits until the newest status is written.
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // Queues the status and returns immediately.
  void Write(const RunStatus& status);

  // Waits until writing the newest status has succeeded or failed.
  void Flush();

  // The error of the last failed write since the previous call, if any.
  std::optional<Error> TakeError();

 private:
  void Serve();

  const std::string path_;
  const Error out_of_memory_;  // made while there is memory
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<RunStatus> newest_;  // not being written yet
  bool writing_ = false, ending_ = false;
  std::optional<Error> error_;
  BackgroundTask task_;  // last, so that it stops before the members it uses are destroyed
};

}  // namespace renzan
