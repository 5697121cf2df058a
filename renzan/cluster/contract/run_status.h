#pragma once

// What a running program reports in status.json (the launch contract). The file is the user's, so
// invalid values are ignored.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

struct RunProgress {
  std::string state;  // starting, running, stopping, stopped, done or failed
  int64_t step = 0, steps = 0;
  double samples_per_second = 0;
  std::optional<double> eta_seconds;  // relative to `updated`
  std::optional<TimeMs> last_checkpoint;
  std::optional<TimeMs> working_since;  // when it began its first step
  TimeMs updated = 0;
};

inline constexpr size_t kMaxStatusBytes = 64 << 10;

// Nothing for a text that is not a status. Times in the future become `now`.
std::optional<RunProgress> ParseRunStatus(std::string_view json, TimeMs now);

}  // namespace renzan::cluster
