#include "renzan/cluster/local/loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace renzan::cluster::local {

Loop::Loop(Controller& controller, int stop_fd) : controller_(controller), stop_fd_(stop_fd) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) FailErrno(errno, "cannot create an eventfd");
}

Loop::~Loop() {
  RejectPosted();
  ::close(wake_fd_);
}

void Loop::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_fd_, 1);
}

void Loop::Post(const std::function<void()>& work) {
  std::promise<bool> ran;
  std::future<bool> done = ran.get_future();
  {
    std::lock_guard lock(mutex_);
    if (ended_) Fail(ErrorCode::kUnavailable, "the daemon is shutting down");
    posted_.push_back({&work, &ran});
  }
  ::eventfd_write(wake_fd_, 1);
  if (!done.get()) Fail(ErrorCode::kUnavailable, "the daemon is shutting down");
}

void Loop::RunPosted() {
  std::vector<Posted> posted;
  {
    std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (const Posted& each : posted) {
    (*each.work)();
    each.ran->set_value(true);
  }
}

// So that nobody waits for a loop that has ended.
void Loop::RejectPosted() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  for (const Posted& each : posted_) each.ran->set_value(false);
  posted_.clear();
}

void Loop::UpdateWatches() {
  for (auto at = watches_.begin(); at != watches_.end();) {
    const auto wanted = controller_.watched().find(at->first);
    if (wanted != controller_.watched().end() && wanted->second == at->second.pid) {
      ++at;
      continue;
    }
    at = watches_.erase(at);
  }
  for (const auto& [job, pid] : controller_.watched()) {
    if (watches_.count(job)) continue;
    Watch& watch = watches_[job];
    watch.pid = pid;
    watch.process.emplace(pid);
    // It has ended already, or cannot be watched; then the controller will check again later.
    if (!*watch.process) {
      watch.process.reset();
      controller_.ProcessEnded(job);
      ::eventfd_write(wake_fd_, 1);
    }
  }
}

void Loop::Wait(TimeMs until) {
  std::vector<pollfd> fds = {{wake_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  std::vector<JobId> jobs;
  for (const auto& [job, watch] : watches_) {
    if (!watch.process) continue;
    fds.push_back({watch.process->fd(), POLLIN, 0});
    jobs.push_back(job);
  }
  const TimeMs left = until == kNever ? -1 : std::max<TimeMs>(0, until - controller_.Now());
  ::poll(fds.data(), fds.size(), static_cast<int>(std::min<TimeMs>(left, INT_MAX)));
  eventfd_t count;
  ::eventfd_read(wake_fd_, &count);
  if (fds[1].revents != 0) {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (fds[i + 2].revents == 0) continue;
    watches_[jobs[i]].process.reset();
    controller_.ProcessEnded(jobs[i]);
  }
}

void Loop::Serve() {
  try {
    for (;;) {
      const TimeMs until = controller_.Turn();
      UpdateWatches();
      Wait(until);
      RunPosted();
      std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
  } catch (...) {
    RejectPosted();
    throw;
  }
  RejectPosted();
}

}  // namespace renzan::cluster::local
