#pragma once

// What the columns of a recorded workload mean. Plain data.

#include <map>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan::cluster::simulate {

// A job's duration is at most ten years.
inline constexpr double kLongestSeconds = 10 * 366 * 86400.0;

struct TraceColumns {
  std::string submitted = "timestamp";  // as in ParseSubmission()
  std::string duration = "duration";    // as in ParseElapsed()
  std::string gpus = "num_gpus";
  std::string queue = "cluster";  // "": all jobs are in one queue
  std::string user;               // "": the queue's name
  std::string name;               // "": jobs have no names
  // How long jobs run, by name, for traces without a duration for each job.
  std::map<std::string, std::string> duration_of;

  void Describe(ConfigFields& fields);
};

// Throws Error kConfig.
TraceColumns ReadTraceColumns(const std::string& path);

}  // namespace renzan::cluster::simulate
