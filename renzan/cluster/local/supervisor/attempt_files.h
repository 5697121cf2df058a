#pragma once

// The files in an attempt's directory (attempt.h): paths and JSON. Functions that read throw Error
// kNoInput for a missing file and kData for a corrupt one.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

struct AttemptPaths {
  // `directory` may be relative to the working directory; the paths are absolute.
  explicit AttemptPaths(const std::string& directory);

  std::string Log(int rank) const;

  std::string directory, plan, lock, started, end, spare_end, requests, wake, supervisor_log;
};

// The content of DIR/started.json.
struct AttemptStart {
  std::vector<pid_t> worker_pids;  // by rank
  int64_t started_ms = 0;          // Unix time
};

std::string PlanToJson(const AttemptPlan& plan);
AttemptPlan ReadPlan(const AttemptPaths& paths);

std::string StartToJson(const AttemptStart& start);
// Nothing if the file does not exist.
std::optional<AttemptStart> ReadStart(const AttemptPaths& paths);

const char* NameOf(EndedBy by);
std::string EndToJson(const AttemptEnd& end);
// Nothing if the file does not exist.
std::optional<AttemptEnd> ReadEnd(const AttemptPaths& paths);

}  // namespace renzan::cluster::local
