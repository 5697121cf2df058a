#pragma once

// status.json, by which a running program tells any scheduler how far it is (the launch contract).
// Times are seconds since 1970.

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
  int64_t steps = 0;               // of how many
  double samples_per_second = 0;
  std::optional<double> eta_seconds = {};
  std::optional<Checkpoint> last_checkpoint = {};
  // When this process began its first step: until then it started and loaded.
  std::optional<double> working_since_unix_seconds = {};
  double updated_unix_seconds = 0;
};

// Replaces `path` atomically: a reader sees the old status or the new. Throws Error kIo.
void WriteStatusFile(const std::string& path, const RunStatus& status);

}  // namespace renzan
