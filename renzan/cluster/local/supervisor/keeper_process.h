#pragma once

// Starts a keeper from a program with many threads: what it inherits, and how it reports in.

#include <sys/types.h>

#include <string>

#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {

// Of all descriptors of the daemon a keeper has these and its stdio (stdout and stderr are
// DIR/keeper.log).
inline constexpr int kKeeperLockDescriptor = 3;
inline constexpr int kKeeperReadyDescriptor = 4;
// What the keeper writes into the second once it runs; anything else is why it cannot.
inline constexpr const char* kKeeperReady = "ready";

// Runs `keeper DIR` in a session of its own, with the lock, and waits until it has
// reported in. Thread-safe. Throws Error kOsError; then it does not run.
pid_t SpawnKeeper(const std::string& keeper, const AttemptPaths& paths, int lock_descriptor);

// Keepers that SpawnKeeper() made and that have ended leave nothing behind after this, so that
// their process ids may become others': not before whoever started one has begun to watch it.
// Thread-safe.
void ReapKeepers();

}  // namespace renzan::cluster::local
