#pragma once

// How much time is left for the last checkpoint once a stop has been requested (the launch
// contract). RENZAN_GRACE_SECONDS is known from the start; stop.json in RENZAN_RUN_DIR, written
// before SIGTERM is sent, says when SIGKILL really follows:
//
//   {"grace_seconds": 20, "deadline": 1800000020.5}     (Unix time)
//
// It is replaced when the deadline is brought forward, and another SIGTERM follows. Not
// thread-safe.

#include <limits>
#include <optional>
#include <string>

#include "renzan/base/clock.h"

namespace renzan {

class StopDeadline {
 public:
  // `notice_path`: of stop.json; empty: none. `grace_seconds`: used without that file; 0: unknown.
  StopDeadline(std::string notice_path, double grace_seconds, const Clock& clock);

  // A stop has been requested.
  void Begin();
  // It has been requested again: the deadline may have been brought forward, but never back.
  void Update();

  // Infinite if the deadline is unknown.
  double SecondsLeft() const;

 private:
  // As the file has it, by the monotonic clock.
  std::optional<double> Noticed() const;

  std::string notice_path_;
  double grace_seconds_;
  const Clock& clock_;
  double deadline_ = std::numeric_limits<double>::infinity();  // by the monotonic clock
};

}  // namespace renzan
