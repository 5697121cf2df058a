#pragma once

// What the exit status of a worker says. Pure functions.

namespace renzan {

enum class WorkerProgram {
  kRenzan,  // this program: statuses are those of ErrorCode, and 1 says that a comparison differs
  kAny,     // may use others for its failures: Python ends with 1 after any exception
};

// Not a failure: 0, 75 (stopped on request), and this program's 1.
bool IsAnswer(WorkerProgram program, int exit_status);

// The worker may have failed because of a peer that died: 69, and any status to which neither
// sysexits.h nor shells give a meaning.
bool MayHaveLostPeer(WorkerProgram program, int exit_status);

}  // namespace renzan
