#include "renzan/cluster/backend/absence.h"

#include <chrono>
#include <thread>

#include "renzan/base/backoff.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::cluster {
namespace {

constexpr double kMaxAbsenceSeconds = 60;
// A connection that lasted for this long without output was not just being refused.
constexpr double kSteadySeconds = 10;
constexpr double kFirstWaitSeconds = 0.1, kLongestWaitSeconds = 5;

}  // namespace

Waiting SystemWaiting() {
  return {.clock = SystemClock(), .wait = [](double seconds) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          }};
}

void Absence::Wait(const std::string& why, bool more, double lasted_seconds) {
  const double now = waiting_.clock.MonotonicSeconds();
  if (!since_ || more || lasted_seconds > kSteadySeconds) {
    since_ = now;
    failures_ = 0;
    LogWarning("{} breaks off ({}): trying for a minute to go on", what_, why);
  } else if (now - *since_ > kMaxAbsenceSeconds) {
    Fail(ErrorCode::kUnavailable, "{} breaks off: {}", what_, why);
  }
  waiting_.wait(Backoff(kFirstWaitSeconds, failures_++, kLongestWaitSeconds));
}

}  // namespace renzan::cluster
