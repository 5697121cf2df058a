#pragma once

// The daemon's loop: the one thread that touches the controller. It sleeps until a supervisor ends,
// a command comes or a time is reached; nothing is polled.

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
  // `stop_fd`: the loop ends when it can be read (-1: none). It is the caller's.
  Loop(Controller& controller, int stop_fd);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Until Stop() or `stop_fd`. Throws Error kData when the store is corrupt.
  void Serve();

  // --- From any thread.
  void Stop();
  // Runs `function(controller)` on the loop's thread and returns what it returns or throws what it
  // throws. Throws Error kUnavailable when the loop has ended. Not from the loop's own thread.
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
    std::optional<ProcessHandle> process;  // none once its end has been reported
  };

  // Puts it in the line and waits until it has run.
  void Post(const std::function<void()>& work);
  void RunPosted();
  void Refuse();
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
  std::mutex mutex_;  // guards the rest
  std::vector<Posted> posted_;
  bool stopping_ = false, ended_ = false;
};

}  // namespace renzan::cluster::local
