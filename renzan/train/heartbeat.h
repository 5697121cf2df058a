#pragma once

// Long work of one worker, while all go on exchanging. Whoever waits in an exchange for a worker
// that verifies, reads or draws for longer than the communicator's deadline takes it for dead, so
// such work is done in the background and the workers meet every few hundredths of a second until
// all are done. Every rank makes the same calls.

#include <functional>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"

namespace renzan {

// Runs this worker's `work`, which may not exchange anything itself, and returns when all workers
// have done theirs. Throws this worker's Error; the others then lose it at their next exchange.
void RunWithHeartbeats(Communicator& comm, std::function<void()> work);

// The same, but returns this worker's Error, if any.
std::optional<Error> TryWithHeartbeats(Communicator& comm, std::function<void()> work);

}  // namespace renzan
