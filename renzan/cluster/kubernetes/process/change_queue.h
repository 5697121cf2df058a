#pragma once

// Passes changes from the watches' threads to the controller's.

#include <mutex>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/cluster/kubernetes/controller/controller.h"

namespace renzan::cluster::kubernetes {

// Thread-safe.
class ChangeQueue {
 public:
  // Throws Error kOsError. `clock` must outlive it.
  explicit ChangeQueue(const Clock& clock);

  void Put(Source source, WatchChange change);
  // Wakes the thread that waits for fd(), without a change.
  void Wake();

  // All changes since the last call, in order for each source.
  std::vector<std::pair<Source, WatchChange>> Take();
  // How long the first of the changes that Take() last returned had waited; 0 if it returned none.
  // For the thread that calls Take().
  double delay_seconds() const { return delay_seconds_; }
  // Readable (poll) from Put() or Wake() until Take().
  int fd() const { return fd_.get(); }

 private:
  const Clock& clock_;
  Descriptor fd_;
  double delay_seconds_ = 0;
  std::mutex mutex_;
  std::vector<std::pair<Source, WatchChange>> changes_;
  double first_put_ = 0;  // of changes_
};

}  // namespace renzan::cluster::kubernetes
