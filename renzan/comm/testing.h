#pragma once

// Ranks as threads of one process, so that a test of many ranks is one line:
//
//   RunRanksAsThreads(3, [](Communicator& communicator) { ... });

#include <functional>

#include "renzan/comm/communicator.h"

namespace renzan {

// Calls body once per rank, each on its own thread, and returns when all are done. If a rank's body
// ends while others wait for that rank, they fail with an Error (kUnavailable) that names it.
// Rethrows the first exception.
void RunRanksAsThreads(int world_size, const std::function<void(Communicator&)>& body);

}  // namespace renzan
