#include "renzan/cluster/backend/daemon_log.h"

#include <fmt/format.h>

#include <optional>

#include "renzan/base/backoff.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/spec/output_frames.h"

namespace renzan::cluster {
namespace {

constexpr double kMaxAbsenceSeconds = 60;
// A connection that lasted for this long without output was not just being refused.
constexpr double kSteadySeconds = 10;
constexpr double kFirstWaitSeconds = 0.1, kLongestWaitSeconds = 5;

// `place`: where to go on; unset: as the query says.
std::string Target(const LogQuery& query, const std::optional<spec::OutputPlace>& place) {
  std::string target = fmt::format("worker={}&follow=1&frames=1", query.worker);
  if (place)
    return target + fmt::format("&attempt={}&from={}{}", place->attempt, place->offset,
                                query.attempt < 0 ? "&later_attempts=1" : "");
  if (query.attempt >= 0) target += fmt::format("&attempt={}", query.attempt);
  if (query.tail >= 0) target += fmt::format("&tail={}", query.tail);
  return target;
}

}  // namespace

void FollowOutput(const FollowedDaemon& daemon, const std::string& job, const LogQuery& query,
                  const std::function<void(std::string_view)>& take) {
  std::optional<spec::OutputPlace> place;
  std::optional<double> gone_since;
  for (int failures = 0;; ++failures) {
    const double began = daemon.clock.MonotonicSeconds();
    bool heard = false, got_text = false;
    std::string why = "the daemon is ending";
    try {
      spec::FrameReader frames;
      daemon.stream(Target(query, place), [&](std::string_view bytes) {
        frames.Add(bytes, [&](std::string_view text, const spec::OutputPlace& behind) {
          take(text);
          place = behind;
          heard = true;
          got_text = got_text || !text.empty();
        });
      });
      if (daemon.is_complete()) return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      why = error.what();
    }
    const double now = daemon.clock.MonotonicSeconds();
    const bool went_on = got_text || (heard && now - began > kSteadySeconds);
    if (!place || (gone_since && !went_on && now - *gone_since > kMaxAbsenceSeconds))
      Fail(ErrorCode::kUnavailable, "the output of job {} breaks off: {}", job, why);
    if (!gone_since || went_on) {
      gone_since = now;
      failures = 0;
      LogWarning("the output of job {} breaks off ({}): trying for a minute to go on", job, why);
    }
    daemon.wait(Backoff(kFirstWaitSeconds, failures, kLongestWaitSeconds));
  }
}

}  // namespace renzan::cluster
