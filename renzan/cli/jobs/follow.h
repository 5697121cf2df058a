#pragma once

// Waiting for a job's end.

#include <cstdint>

#include "renzan/cli/cluster/daemon_access.h"

namespace renzan {

// Waits until the job has ended. Returns its exit code, or 1 if it has none or was stopped with 0.
// With `follow`, prints the output of worker 0 of all attempts to stdout. Survives restarts of the
// daemon; throws Error kUnavailable if it stays away for too long.
int WaitForJob(client::Client& client, int64_t id, bool follow);

}  // namespace renzan
