#include "renzan/launch/launch_result.h"

#include <csignal>
#include <cstring>

#include "renzan/base/error.h"

namespace renzan {

LaunchResult StoppedBy(int signal) {
  // Whoever sends SIGTERM or SIGHUP takes the machine away and will run us again; Ctrl-C is a
  // person who has seen enough, and 128 + signal is what a shell makes of that.
  const int status = signal == SIGINT ? 128 + SIGINT : static_cast<int>(ErrorCode::kTempFail);
  return {.kind = LaunchResult::Kind::kStopped,
          .exit_status = status,
          .stop_requested = true,
          .cause = fmt::format("stopped by signal {} ({})", signal, strsignal(signal))};
}

}  // namespace renzan
