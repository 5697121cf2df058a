#pragma once

// The launch contract's signals, for a process that trains: SIGTERM, SIGHUP and Ctrl-C request a
// last checkpoint and a stop, SIGUSR1 requests a checkpoint. A second SIGTERM means that the
// deadline may have been brought forward (stop_deadline.h); a second Ctrl-C kills the process.
//
// They are blocked in every thread and fetched from a SignalQueue by a dedicated thread: a handler
// would corrupt memory in a thread whose code uses the stack pointer as a general register, as
// kernels of some libraries do.

#include "renzan/saving/requests.h"

namespace renzan {

// Blocks the signals in this process and in those it starts, so that none is lost before it is
// clear whether this process trains or launches workers. Call it before any other thread exists.
// Returns the requests that StartServingTrainSignals sets. Throws Error kOsError.
RunRequests& BlockTrainSignals();

// For a process that trains: serves the signals that are pending and all that follow.
void StartServingTrainSignals();

}  // namespace renzan
