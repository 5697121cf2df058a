#pragma once

// Runs long work while the workers keep exchanging. A worker that spends longer than the
// communicator's timeout on verifying, reading or drawing values would look dead to the others, so
// such work runs in the background while the workers exchange every few hundredths of a second
// until all are done. Every rank makes the same calls.

#include <functional>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"

namespace renzan {

// Runs this worker's `work`, which must not exchange anything itself, and returns when all workers
// have finished theirs. Throws this worker's Error; the others then fail at their next exchange.
void RunWithHeartbeats(Communicator& comm, std::function<void()> work);

// The same, but returns this worker's Error, if any.
std::optional<Error> TryWithHeartbeats(Communicator& comm, std::function<void()> work);

}  // namespace renzan
