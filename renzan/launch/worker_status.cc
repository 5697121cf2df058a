#include "renzan/launch/worker_status.h"

#include "renzan/base/error.h"

namespace renzan {
namespace {

// The exit status of a worker that compared and found a difference.
constexpr int kExitDiffers = 1;

// A usage error (as in shells, Python and argparse), a status of sysexits.h, or a program that a
// shell cannot start.
bool HasMeaning(int exit_status) {
  return exit_status == 0 || exit_status == 2 || (exit_status >= 64 && exit_status <= 78) ||
         exit_status == 126 || exit_status == 127;
}

}  // namespace

bool IsAnswer(WorkerProgram program, int exit_status) {
  return exit_status == 0 || exit_status == static_cast<int>(ErrorCode::kTempFail) ||
         (program == WorkerProgram::kRenzan && exit_status == kExitDiffers);
}

bool MayHaveLostPeer(WorkerProgram program, int exit_status) {
  return exit_status == static_cast<int>(ErrorCode::kUnavailable) ||
         (program == WorkerProgram::kAny && !HasMeaning(exit_status));
}

}  // namespace renzan
