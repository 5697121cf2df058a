#pragma once

// The launch contract's signals, for a process that trains: SIGTERM, SIGHUP and Ctrl-C ask for a
// last checkpoint, SIGUSR1 for one more. A second SIGTERM changes nothing; a second Ctrl-C ends the
// process at once.
//
// They are blocked in every thread and taken by one that does nothing else. A handler that ran in
// whichever thread came first would corrupt memory: some of oneDNN's matrix products use the stack
// pointer for their own ends, and the kernel would write the handler's frame to where it points.

#include "renzan/train/checkpointing/requests.h"

namespace renzan {

// From now on they wait, and so they do in threads and programs started from here: until it is
// clear whether this process trains or launches those that do, neither a request nor the process
// may be lost. Call it first, before there are other threads. Returns what AnswerTrainSignals sets.
RunRequests& HoldTrainSignals();

// For the process that trains: takes those that have waited, and all that come.
void AnswerTrainSignals();

}  // namespace renzan
