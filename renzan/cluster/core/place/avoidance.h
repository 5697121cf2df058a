#pragma once

// A job avoids the nodes on which it failed soon after its start (Job::failed_on), so that a broken
// node does not get all of its attempts; and those on which other jobs of its user do
// (User::failing_on), so that such a node does not get all of a user's jobs, one after the other.
// This is the one place that decides whether it does. A job waits for other nodes for an hour: the
// jobs may fail by their own fault, and the others be busy for days.

#include <algorithm>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr TimeMs kAvoidMs = kHour;

// When a pending job that has failed somewhere takes those nodes, too. The hour begins after its
// back-off.
inline TimeMs AvoidsUntil(const Job& job) {
  return std::max(job.waiting_since, job.eligible_at) + kAvoidMs;
}

// Without the nodes that may never come back: cordoned, drained and failed ones.
Snapshot InService(Snapshot snapshot);

// When a job takes a node again on which its user's jobs fail; 0 if it does not avoid it. A job
// that was submitted more than a minute after failing.since does not: its program may have been
// mended. Earlier ones are of the same burst.
inline TimeMs AvoidsUntil(const Job& job, const FailingNode& failing) {
  return job.submitted <= failing.since + kMinute ? failing.latest + kAvoidMs : 0;
}

// Where its user's jobs fail, and the job avoids it now. `failing_on` is the user's.
const FailingNode* AvoidsForItsUser(const std::vector<FailingNode>& failing_on, const Job& job,
                                    const std::string& node, TimeMs now);

// When the job next stops avoiding some node; kNever if it avoids none.
TimeMs NextEndOfAvoidance(const Snapshot& snapshot, const Job& job);

// Whether any job may avoid a node.
bool HasAvoidance(const Snapshot& snapshot);

// The same snapshot, in which every job that avoids nodes has a request that excludes them. A job
// that no other node in service, or that can be bought, could ever serve does not avoid any: it
// would wait for ever.
Snapshot WithAvoidance(Snapshot snapshot);

}  // namespace renzan::cluster
