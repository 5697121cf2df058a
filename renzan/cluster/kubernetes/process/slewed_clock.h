#pragma once

// A clock whose wall time does not jump when the machine's is set: jobs' time-outs and pauses
// between attempts are differences of wall times stored in their statuses.

#include <mutex>

#include "renzan/base/clock.h"

namespace renzan::cluster::kubernetes {

// Thread-safe.
class SlewedClock : public Clock {
 public:
  // It runs faster or slower by this fraction until it agrees with `clock`.
  static constexpr double kSlew = 0.1;

  // `clock` must outlive it.
  explicit SlewedClock(const Clock& clock)
      : clock_(clock), at_(clock.MonotonicSeconds()), shown_(clock.UnixSeconds()) {}

  double MonotonicSeconds() const override { return clock_.MonotonicSeconds(); }
  double UnixSeconds() const override;

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  mutable double at_;     // MonotonicSeconds() of the last call
  mutable double shown_;  // the UnixSeconds() that it returned then
};

}  // namespace renzan::cluster::kubernetes
