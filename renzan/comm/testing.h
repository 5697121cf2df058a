#pragma once

// Ranks as threads of one process, so that a test of many ranks is one line:
//
//   RunRanksAsThreads(3, [](Communicator& communicator) { ... });

#include <functional>

#include "renzan/comm/communicator.h"

namespace renzan {

// Calls body once per rank, each on its own thread, and returns when all are done. A rank whose
// body ends while others wait for it makes them fail with an Error (kUnavailable) that names it.
// The exception that was thrown first is thrown again here.
void RunRanksAsThreads(int world_size, const std::function<void(Communicator&)>& body);

}  // namespace renzan
