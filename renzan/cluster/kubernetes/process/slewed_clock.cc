#include "renzan/cluster/kubernetes/process/slewed_clock.h"

#include <algorithm>

namespace renzan::cluster::kubernetes {

double SlewedClock::UnixSeconds() const {
  const std::lock_guard lock(mutex_);
  const double now = clock_.MonotonicSeconds(), elapsed = now - at_;
  at_ = now;
  shown_ += elapsed;
  const double most = kSlew * elapsed;
  shown_ += std::clamp(clock_.UnixSeconds() - shown_, -most, most);
  return shown_;
}

}  // namespace renzan::cluster::kubernetes
