#include "renzan/base/background_task.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <system_error>
#include <utility>

namespace renzan {
namespace {

// Returns the error that ended it, if any.
std::optional<Error> Run(const std::function<void()>& function) {
  try {
    function();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOsError,
                 "out of memory: use more workers, smaller tables or a smaller batch");
  } catch (const std::system_error& error) {
    return Error(ErrorCode::kOsError, error.what());
  } catch (const std::exception& error) {
    return Error(ErrorCode::kSoftware, error.what());
  }
}

}  // namespace

BackgroundTask::~BackgroundTask() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::Start(std::function<void()> function, Priority priority) {
  CHECK(finished());
  if (thread_.joinable()) thread_.join();
  error_.reset();
  finished_ = false;
  try {
    thread_ = std::thread([this, function = std::move(function), priority] {
      // On Linux this affects the calling thread only.
      if (priority == Priority::kLow)
        setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
      std::optional<Error> error = Run(function);
      std::lock_guard lock(mutex_);
      error_ = std::move(error);
      finished_ = true;
      done_.notify_all();
    });
  } catch (const std::system_error& error) {
    finished_ = true;
    Fail(ErrorCode::kOsError, "cannot start a thread: {}", error.what());
  }
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
