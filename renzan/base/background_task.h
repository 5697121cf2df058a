#pragma once

// Runs one function on its own thread and keeps its result. For a single owner; the function must
// be safe to run concurrently with the owner.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "renzan/base/error.h"

namespace renzan {

class BackgroundTask {
 public:
  BackgroundTask() = default;
  // Waits for the function to end.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  enum class Priority {
    kNormal,
    kLow,  // runs only when the process's other threads leave CPU time
  };

  // The previous function must have finished. Throws Error kOsError, and starts nothing, if the OS
  // cannot create another thread.
  void Start(std::function<void()> function, Priority priority = Priority::kNormal);

  // Also true if nothing was ever started.
  bool finished() const;
  // Waits at most `seconds`.
  void WaitFor(double seconds) const;
  // The Error that ended the last function, if any. Out of memory or threads is kOsError, any other
  // exception kSoftware. Call it only when finished.
  const std::optional<Error>& error() const { return error_; }

 private:
  std::thread thread_;
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool finished_ = true;
  std::optional<Error> error_;
};

}  // namespace renzan
