#pragma once

// Waiting for a job's end.

#include <string>

#include "renzan/cluster/backend/backend.h"

namespace renzan {

// Waits until the job has ended. Returns its exit code, or 1 if it has none or was stopped with 0.
// With `follow`, prints the output of worker 0 of all attempts to stdout. Survives restarts of the
// daemon or API server; throws Error kUnavailable if it stays away for too long.
int WaitForJob(cluster::Backend& backend, const std::string& job, bool follow);

}  // namespace renzan
