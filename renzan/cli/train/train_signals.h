#pragma once

// The launch contract's signals, for a process that trains: SIGTERM, SIGHUP and Ctrl-C request a
// last checkpoint and a stop, SIGUSR1 requests a checkpoint. A second SIGTERM means that the
// deadline may have been brought forward (stop_deadline.h); a second Ctrl-C kills the process.
//
// They are blocked in every thread and fetched from a SignalQueue by a dedicated thread. A signal
// handler would corrupt memory: some of oneDNN's matrix products use the stack pointer as a general
// register, and the kernel would write the handler's frame to the address it holds.

#include "renzan/train/checkpointing/requests.h"

namespace renzan {

// Blocks the signals in this process and in those it starts, so that none is lost before it is
// clear whether this process trains or launches workers. Call it before any other thread exists.
// Returns the requests that StartServingTrainSignals sets. Throws Error kOsError.
RunRequests& BlockTrainSignals();

// For a process that trains: serves the signals that are pending and all that follow.
void StartServingTrainSignals();

}  // namespace renzan
