#pragma once

// Time is passed in, so that tests and simulations can make their own.

#include <chrono>
#include <string>

namespace renzan {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an arbitrary moment; never goes back.
  virtual double MonotonicSeconds() const = 0;
  // Seconds since 1970-01-01 UTC.
  virtual double UnixSeconds() const = 0;
};

// The machine's clock.
const Clock& SystemClock();

// "2026-01-31T12:34:56Z"
std::string FormatUtc(double unix_seconds);

}  // namespace renzan
