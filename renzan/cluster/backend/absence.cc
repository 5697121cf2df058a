#include "renzan/cluster/backend/absence.h"

#include <chrono>
#include <thread>

#include "renzan/base/backoff.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::cluster {
namespace {

constexpr double kMaxAbsenceSeconds = 60;
// A connection that lasted for this long without output was not just being ended.
constexpr double kSteadySeconds = 10;
// So many in a row that did not, although somebody answered: it will go on like that.
constexpr int kMostHungUp = 20;
constexpr double kFirstWaitSeconds = 0.1, kLongestWaitSeconds = 5;

}  // namespace

Waiting SystemWaiting() {
  return {.clock = SystemClock(), .wait = [](double seconds) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          }};
}

void Absence::Wait(const std::string& why, const LastAttempt& last) {
  const double now = waiting_.clock.MonotonicSeconds();
  const bool steady = last.more || (last.answered && last.seconds > kSteadySeconds);
  if (steady)
    failures_ = hung_up_ = 0;
  else if (last.answered)
    ++hung_up_;
  if (last.answered) since_.reset();
  if (hung_up_ > kMostHungUp || (since_ && now - *since_ > kMaxAbsenceSeconds))
    Fail(ErrorCode::kUnavailable, "{} breaks off: {}", what_, why);
  if (!since_) {
    since_ = now;
    if (hung_up_ <= 1) LogWarning("{} breaks off ({}): trying for a minute to go on", what_, why);
  }
  waiting_.wait(Backoff(kFirstWaitSeconds, failures_++, kLongestWaitSeconds));
}

}  // namespace renzan::cluster
