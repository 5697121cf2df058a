#include "renzan/launch/launch_result.h"

#include <csignal>
#include <cstring>

#include "renzan/base/error.h"

namespace renzan {

LaunchResult StoppedBy(int signal) {
  // SIGTERM or SIGHUP means that the machine is being taken away and the run will be repeated;
  // SIGINT means that a person stopped it, which shells report as 128 + signal.
  const int status = signal == SIGINT ? 128 + SIGINT : static_cast<int>(ErrorCode::kTempFail);
  return {.kind = LaunchResult::Kind::kStopped,
          .exit_status = status,
          .stop_requested = true,
          .cause = fmt::format("stopped by signal {} ({})", signal, strsignal(signal))};
}

}  // namespace renzan
