#pragma once

#include <functional>

namespace renzan {

// Turns SIGINT, SIGTERM and SIGHUP, unless ignored, into a stop request that long-running work
// polls, so that it can clean up.
std::function<bool()> StopOnSignals();

}  // namespace renzan
