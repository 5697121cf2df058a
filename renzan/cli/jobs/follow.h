#pragma once

// Staying with a job until it has ended.

#include <cstdint>

#include "renzan/cli/cluster/daemon_access.h"

namespace renzan {

// Returns when the job has ended: its exit code; 1 when it has none or was stopped with 0. With
// `follow` the output of worker 0 goes to stdout meanwhile, one attempt after the other. A daemon
// that is started again meanwhile is waited for; one that stays away is an Error kUnavailable.
int WaitForJob(client::Client& client, int64_t id, bool follow);

}  // namespace renzan
