#pragma once

// Detects an mpirun that has lost a worker but never ends. Open MPI 4.1 deadlocks if a worker dies
// at a certain moment of MPI_Init: its workers are gone, and it waits for ever. Not thread-safe.

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace renzan {

class MpirunWatch {
 public:
  // `patience_seconds`: how long mpirun may have fewer live workers than it should; it briefly does
  // while it starts and ends.
  MpirunWatch(int workers, double patience_seconds)
      : workers_(workers), patience_seconds_(patience_seconds) {}

  double seconds_between_looks() const { return patience_seconds_ / 6; }

  // Whether the running mpirun `pid` hangs. Looks at its children, at most once per
  // seconds_between_looks().
  bool IsHung(pid_t pid);

 private:
  int workers_;
  double patience_seconds_;
  std::optional<std::chrono::steady_clock::time_point> last_look_, incomplete_since_;
};

}  // namespace renzan
