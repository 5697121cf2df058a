#include "renzan/cluster/kubernetes/process/change_queue.h"

#include <sys/eventfd.h>

#include <cerrno>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {

ChangeQueue::ChangeQueue(const Clock& clock)
    : clock_(clock), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) FailErrno(errno, "cannot create an eventfd");
}

void ChangeQueue::Put(Source source, WatchChange change) {
  {
    std::lock_guard lock(mutex_);
    if (changes_.empty()) first_put_ = clock_.MonotonicSeconds();
    changes_.emplace_back(source, std::move(change));
  }
  Wake();
}

void ChangeQueue::Wake() { ::eventfd_write(fd_.get(), 1); }

std::vector<std::pair<Source, WatchChange>> ChangeQueue::Take() {
  eventfd_t count;
  ::eventfd_read(fd_.get(), &count);
  std::lock_guard lock(mutex_);
  delay_seconds_ = changes_.empty() ? 0 : clock_.MonotonicSeconds() - first_put_;
  return std::exchange(changes_, {});
}

}  // namespace renzan::cluster::kubernetes
