#include "renzan/base/background_task.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace renzan {

BackgroundTask::~BackgroundTask() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::Start(std::function<void()> function, Priority priority) {
  CHECK(finished());
  if (thread_.joinable()) thread_.join();
  finished_ = false;
  error_.reset();
  thread_ = std::thread([this, function = std::move(function), priority] {
    // Of this thread alone, on Linux.
    if (priority == Priority::kLow)
      setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
    std::optional<Error> error;
    try {
      function();
    } catch (const Error& e) {
      error = e;
    } catch (const std::exception& e) {
      error = Error(ErrorCode::kSoftware, e.what());
    }
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    finished_ = true;
    done_.notify_all();
  });
}

bool BackgroundTask::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

void BackgroundTask::WaitFor(double seconds) const {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return finished_; });
}

}  // namespace renzan
