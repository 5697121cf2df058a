#pragma once

// Starts a supervisor from a program with many threads: what it inherits, and how it reports in.

#include <sys/types.h>

#include <string>

#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {

// Of all descriptors of the daemon a supervisor has these and its stdio (stdout and stderr are
// DIR/supervisor.log).
inline constexpr int kSupervisorLockDescriptor = 3;
inline constexpr int kSupervisorReadyDescriptor = 4;
// What the supervisor writes into the second once it runs; anything else is why it cannot.
inline constexpr const char* kSupervisorReady = "ready";

// Runs `supervisor DIR` in a session of its own, with the lock, and waits until it has
// reported in. Thread-safe. Throws Error kOsError; then it does not run.
pid_t SpawnSupervisor(const std::string& supervisor, const AttemptPaths& paths,
                      int lock_descriptor);

// Supervisors that SpawnSupervisor() made and that have ended leave nothing behind after this, so
// that their process ids may become others': not before whoever started one has begun to watch it.
// Thread-safe.
void ReapSupervisors();

}  // namespace renzan::cluster::local
