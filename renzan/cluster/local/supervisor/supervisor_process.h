#pragma once

// Starts a supervisor from a multi-threaded program: what it inherits, and how it reports that it
// is ready.

#include <sys/types.h>

#include <string>

#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {

// A supervisor inherits only these descriptors and stdio (stdout and stderr are
// DIR/supervisor.log).
inline constexpr int kSupervisorLockDescriptor = 3;
inline constexpr int kSupervisorReadyDescriptor = 4;
// Written to kSupervisorReadyDescriptor once the supervisor runs. Any other text is an error
// message.
inline constexpr const char* kSupervisorReady = "ready";

// Runs `supervisor DIR` in a new session, with the lock, and waits until it is ready. Thread-safe.
// Throws Error kOsError; then it does not run.
pid_t SpawnSupervisor(const std::string& supervisor, const AttemptPaths& paths,
                      int lock_descriptor);

// Reaps supervisors from SpawnSupervisor() that have ended, after which their process ids may be
// reused: call it only when the caller of SpawnSupervisor() has begun to watch the process.
// Thread-safe.
void ReapSupervisors();

}  // namespace renzan::cluster::local
