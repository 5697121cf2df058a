#pragma once

// Why a job waits, what would start it, and when it may start: computed in this process on a
// snapshot, so that the daemon or the API server only has to provide the snapshot.

#include <string>

#include "renzan/cluster/backend/backend.h"

namespace renzan::cluster {

// {"id", "state", "why", "warning"} and, for a pending job, {"reason", "would_start_with",
// "estimated_start" (its median), "estimated_start_p90", "estimate_rests_on", "queue_position"}. A
// caller who may not see the whole cluster gets what the controller has said, and a "note" instead
// of these.
Document ExplainJob(Backend& backend, const std::string& job);

}  // namespace renzan::cluster
