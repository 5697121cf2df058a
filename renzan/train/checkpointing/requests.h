#pragma once

// What a running program can be asked for from outside (the launch contract). Set by whoever takes
// the signals, read by the training loop.

#include <atomic>

namespace renzan {

struct RunRequests {
  std::atomic<bool> stop{false};        // SIGTERM, SIGINT: checkpoint, then exit 75
  std::atomic<bool> checkpoint{false};  // SIGUSR1: checkpoint and go on
};

}  // namespace renzan
