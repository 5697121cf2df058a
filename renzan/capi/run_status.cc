#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/capi/guard.h"
#include "renzan/observe/status_file.h"

using namespace renzan;
using namespace renzan::capi;

renzan_status renzan_write_run_status(const char* path, const renzan_run_status* status) {
  return Guard([&] {
    NeedsArgument(path, "path");
    NeedsArgument(status, "status");
    NeedsArgument(status->state, "status->state");
    RunStatus out{.state = status->state,
                  .step = status->step,
                  .steps = status->steps,
                  .samples_per_second = status->samples_per_second,
                  .updated_unix_seconds = SystemClock().UnixSeconds()};
    if (status->eta_seconds >= 0) out.eta_seconds = status->eta_seconds;
    if (status->checkpoint_step >= 0)
      out.last_checkpoint = {status->checkpoint_step, status->checkpoint_unix_seconds};
    if (status->working_since_unix_seconds > 0)
      out.working_since_unix_seconds = status->working_since_unix_seconds;
    WriteStatusFile(path, out);
  });
}
