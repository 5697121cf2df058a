#pragma once

// status.json, in which a running program reports its progress to any scheduler (the launch
// contract). Times are seconds since 1970.

#include <cstdint>
#include <optional>
#include <string>

namespace renzan {

struct RunStatus {
  struct Checkpoint {
    int64_t step = 0;
    double unix_seconds = 0;
  };

  std::string state = "starting";  // starting, running, stopping, stopped, done or failed
  int64_t step = 0;                // steps finished
  int64_t steps = 0;               // total
  double samples_per_second = 0;
  std::optional<double> eta_seconds = {};
  std::optional<Checkpoint> last_checkpoint = {};
  // When this process began its first step, after startup and loading.
  std::optional<double> working_since_unix_seconds = {};
  double updated_unix_seconds = 0;
};

// Replaces `path` atomically: a reader sees the old or the new status. Throws Error kIo.
void WriteStatusFile(const std::string& path, const RunStatus& status);

// Whether the status at `path` says that its run has begun, but written no checkpoint yet. False if
// there is none, or it cannot be read.
bool HasNoCheckpointYet(const std::string& path);

}  // namespace renzan
