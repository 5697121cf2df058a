#pragma once

// The daemon's event loop: the only thread that uses the controller. It sleeps until a supervisor
// ends, a command arrives or a timer expires; there is no polling.

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

class Loop {
 public:
  // The loop ends when `stop_fd`, which the caller owns, becomes readable (-1: none).
  Loop(Controller& controller, int stop_fd);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until Stop() or `stop_fd`. Throws Error kData if the store is corrupt.
  void Serve();

  // --- From any thread.
  void Stop();
  // Runs `function(controller)` on the loop's thread; returns its result or throws its exception.
  // Throws Error kUnavailable if the loop has ended. Must not be called from the loop's thread.
  template <typename F>
  auto Run(F&& function) {
    using Result = decltype(function(std::declval<Controller&>()));
    std::packaged_task<Result()> task([&] { return function(controller_); });
    std::future<Result> result = task.get_future();
    Post([&] { task(); });
    return result.get();
  }

 private:
  struct Watch {
    pid_t pid = 0;
    std::optional<ProcessHandle> process;  // empty once its end has been reported
  };

  // Queues `work` and waits until it has run.
  void Post(const std::function<void()>& work);
  void RunPosted();
  void RejectPosted();
  void UpdateWatches();
  void Wait(TimeMs until);

  Controller& controller_;
  const int stop_fd_;
  int wake_fd_;
  std::map<JobId, Watch> watches_;

  struct Posted {
    const std::function<void()>* work;
    std::promise<bool>* ran;
  };
  std::mutex mutex_;  // guards the members below
  std::vector<Posted> posted_;
  bool stopping_ = false, ended_ = false;
};

}  // namespace renzan::cluster::local
