#include "renzan/cluster/backend/daemon_log.h"

#include <fmt/format.h>

#include <optional>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/output_frames.h"

namespace renzan::cluster {
namespace {

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
  const std::string what = fmt::format("the output of job {}", job);
  Absence absence(daemon.waiting, what);
  for (;;) {
    const double began = daemon.waiting.clock.MonotonicSeconds();
    bool heard = false, got_text = false;
    std::string why = "the daemon is ending";
    spec::FrameReader frames;
    try {
      daemon.stream(Target(query, place), [&](std::string_view bytes) {
        frames.Add(bytes, [&](std::string_view text, const spec::OutputPlace& behind) {
          take(text);
          place = behind;
          heard = true;
          got_text = got_text || !text.empty();
        });
      });
      frames.End();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      why = error.what();
    }
    // Also if the connection broke behind that.
    if (frames.is_complete()) return;
    if (!place) Fail(ErrorCode::kUnavailable, "{} breaks off: {}", what, why);
    absence.Wait(why, {.answered = heard,
                       .more = got_text,
                       .seconds = daemon.waiting.clock.MonotonicSeconds() - began});
  }
}

}  // namespace renzan::cluster
