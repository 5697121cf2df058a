#pragma once

// A minute in which a server that has gone may come back. For one thread.

#include <functional>
#include <optional>
#include <string>

#include "renzan/base/clock.h"

namespace renzan::cluster {

struct Waiting {
  const Clock& clock;
  std::function<void(double seconds)> wait;
};
// Really sleeps.
Waiting SystemWaiting();

class Absence {
 public:
  // `what` breaks off: "the output of job 7".
  Absence(Waiting waiting, std::string what)
      : waiting_(std::move(waiting)), what_(std::move(what)) {}

  // Waits for a while before the next attempt. The first time, and after more output or a
  // connection that `lasted`, says so and allows another minute. Throws Error kUnavailable after
  // that.
  void Wait(const std::string& why, bool more, double lasted_seconds);
  // Everything works.
  void Over() { since_.reset(); }

 private:
  const Waiting waiting_;
  const std::string what_;
  std::optional<double> since_;
  int failures_ = 0;
};

}  // namespace renzan::cluster
