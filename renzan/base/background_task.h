#pragma once

// One function on a thread of its own, and what became of it. For one owner; the function itself
// must be safe to run beside the owner's work.

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
    kLow,  // gets what the process's other threads leave
  };

  // The one before must have finished. Throws Error kOsError when the machine has no room for
  // another thread; then nothing was started.
  void Start(std::function<void()> function, Priority priority = Priority::kNormal);

  // Also true when nothing was ever started.
  bool finished() const;
  // At most so long.
  void WaitFor(double seconds) const;
  // The Error, if any, with which the last function ended. A lack of memory or of threads counts as
  // kOsError, other exceptions as kSoftware.
  // Call it when finished.
  const std::optional<Error>& error() const { return error_; }

 private:
  std::thread thread_;
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool finished_ = true;
  std::optional<Error> error_;
};

}  // namespace renzan
