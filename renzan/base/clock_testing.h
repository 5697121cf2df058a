#pragma once

// A clock for tests.

#include "renzan/base/clock.h"

namespace renzan {

class ManualClock : public Clock {
 public:
  double MonotonicSeconds() const override { return seconds; }
  double UnixSeconds() const override { return 1.8e9 + seconds; }
  double seconds = 100;
};

}  // namespace renzan
