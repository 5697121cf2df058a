#pragma once

// Requests from outside to a running program (the launch contract). Set by the thread that serves
// signals, read by the training loop.

#include <atomic>

namespace renzan {

struct RunRequests {
  std::atomic<bool> stop{false};        // SIGTERM, SIGINT: checkpoint, then exit 75
  std::atomic<bool> checkpoint{false};  // SIGUSR1: checkpoint and continue
};

}  // namespace renzan
