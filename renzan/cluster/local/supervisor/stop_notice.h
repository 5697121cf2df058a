#pragma once

// RUN_DIR/stop.json, part of the launch contract: how long a job that is being stopped really has.
// RENZAN_GRACE_SECONDS is what it was promised at its start, and a notice may be shorter than that.
//
//   {"grace_seconds": 20, "deadline": 1800000020.5}
//
// so many seconds, until that Unix time; after it SIGKILL. Replaced whole when it becomes shorter.
//
// The directory is the job's user's, and whoever writes there may be root: no link in it is
// followed. Thread-safe.

#include <sys/types.h>

#include <string>

namespace renzan::cluster::local {

inline constexpr const char* kStopNotice = "stop.json";

struct StopNotice {
  double grace_seconds = 0;
  double deadline = 0;  // Unix time
};

// The file belongs to that user, if we may choose. Throws Error kIo or kOsError.
void WriteStopNotice(const std::string& run_dir, const StopNotice& notice, uid_t uid, gid_t gid);
// Also when there is none.
void RemoveStopNotice(const std::string& run_dir);

}  // namespace renzan::cluster::local
