#pragma once

// RUN_DIR/stop.json, part of the launch contract: how much time a job that is being stopped really
// has, which may be less than its RENZAN_GRACE_SECONDS.
//
//   {"grace_seconds": 20, "deadline": 1800000020.5}
//
// SIGKILL follows at the deadline (Unix time). Replaced atomically when the deadline is brought
// forward. Several writers may share the directory; each has a name of its own.
//
// The directory belongs to the job's user and the writer may be root, so links are not followed.
// Thread-safe.

#include <sys/types.h>

#include <string>

namespace renzan::cluster {

inline constexpr const char* kStopNotice = "stop.json";

struct StopNotice {
  double grace_seconds = 0;
  double deadline = 0;  // Unix time
};

// If we are root, the user owns the file. Throws Error kIo or kOsError.
void WriteStopNotice(const std::string& run_dir, const StopNotice& notice, uid_t uid, gid_t gid,
                     const std::string& writer = "");
// Does nothing if there is none.
void RemoveStopNotice(const std::string& run_dir);

}  // namespace renzan::cluster
