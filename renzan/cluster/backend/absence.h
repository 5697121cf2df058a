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

// The attempt that has just failed.
struct LastAttempt {
  bool answered = false;  // by anybody
  bool more = false;      // there was more output
  double seconds = 0;     // it lasted so long
};

class Absence {
 public:
  // `what` breaks off: "the output of job 7".
  Absence(Waiting waiting, std::string what)
      : waiting_(std::move(waiting)), what_(std::move(what)) {}

  // Waits for a while before the next attempt. The minute begins when nobody answers any more. The
  // first time, and whenever it begins anew, says so. Throws Error kUnavailable after that minute,
  // and if somebody answers time after time without any more output, and hangs up at once.
  void Wait(const std::string& why, const LastAttempt& last);
  // Everything works.
  void Over() { since_.reset(); }

 private:
  const Waiting waiting_;
  const std::string what_;
  std::optional<double> since_;
  int failures_ = 0, hung_up_ = 0;
};

}  // namespace renzan::cluster
