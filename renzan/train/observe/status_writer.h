#pragma once

// Keeps status.json up to date from a thread of its own, so that training never waits for the disk:
// only the newest status is written, those that came meanwhile are skipped. For one owner.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "renzan/base/background_task.h"
#include "renzan/base/error.h"
#include "renzan/train/observe/status_file.h"

namespace renzan {

class StatusWriter {
 public:
  // Throws Error kOsError when there is no room for a thread.
  explicit StatusWriter(std::string path);
  // Waits until the newest status is written.
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // Takes it and returns at once.
  void Write(const RunStatus& status);

  // Returns when the newest status has been written, or could not be.
  void Flush();

  // Why a status could not be written, if that happened since the last call.
  std::optional<Error> TakeError();

 private:
  void Serve();

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<RunStatus> newest_;  // not taken up yet
  bool writing_ = false, ending_ = false;
  std::optional<Error> error_;
  BackgroundTask task_;  // after what it uses
};

}  // namespace renzan
