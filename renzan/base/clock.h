#pragma once

// An interface, so that tests and simulations can supply their own time.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an arbitrary moment; never decreases.
  virtual double MonotonicSeconds() const = 0;
  // Seconds since 1970-01-01 UTC.
  virtual double UnixSeconds() const = 0;
  int64_t UnixMs() const { return static_cast<int64_t>(UnixSeconds() * 1000); }
};

// The machine's clock.
const Clock& SystemClock();

// "2026-01-31T12:34:56Z"
std::string FormatUtc(double unix_seconds);
// "2026-01-31 14:34:56" in the local time zone: for people. Logs and files have UTC.
std::string FormatLocal(double unix_seconds);
// As FormatUtc(), or with a fraction of a second, to Unix seconds.
std::optional<double> ParseUtc(std::string_view text);
// "Sat, 31 Jan 2026 12:34:56 GMT", as HTTP's Date header (RFC 9110, 5.6.7), to Unix seconds.
std::optional<double> ParseHttpDate(std::string_view text);

}  // namespace renzan
