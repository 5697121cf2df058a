#pragma once

// Requests from outside to a running program (the launch contract). Set by the thread that serves
// signals, read by the training loop.

#include <atomic>
#include <cstdint>

namespace renzan {

struct RunRequests {
  // How often a stop was requested (SIGTERM, SIGINT): checkpoint, then exit 75. More than once: the
  // deadline may have been brought forward.
  std::atomic<int64_t> stops{0};
  std::atomic<bool> checkpoint{false};  // SIGUSR1: checkpoint and continue
};

}  // namespace renzan
