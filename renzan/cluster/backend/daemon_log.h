#pragma once

// Following a worker's output although the daemon restarts or a connection breaks meanwhile.

#include <functional>
#include <string>
#include <string_view>

#include "renzan/cluster/backend/absence.h"
#include "renzan/cluster/backend/backend.h"

namespace renzan::cluster {

// The daemon, as far as that needs it.
struct FollowedDaemon {
  // The frames (spec/output_frames.h) that answer this query of a job's logs: "worker=0&tail=5".
  // Throws Error kUnavailable while the daemon is away.
  std::function<void(const std::string& query, const std::function<void(std::string_view)>& take)>
      stream;
  Waiting waiting;
};

// Passes on the output until the daemon says that it is complete, every byte once. While the daemon
// is away it tries for a minute to go on where it was, and says so once. Throws Error kUnavailable
// if that does not help or if there was no daemon to begin with, and kConfig if the daemon is of an
// earlier version; what `take` throws is rethrown. `job` is for messages.
void FollowOutput(const FollowedDaemon& daemon, const std::string& job, const LogQuery& query,
                  const std::function<void(std::string_view)>& take);

}  // namespace renzan::cluster
