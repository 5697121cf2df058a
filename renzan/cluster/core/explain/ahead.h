#pragma once

#include <string>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// Which jobs of its queue go before a pending job, although they would not by priority or service,
// because their users have used less of the queue lately: "job 7 of ann, who has used 12 GPU hours
// of queue vision lately, and bob 40". "": none does.
std::string AheadByFairShare(const Snapshot& snapshot, const Job& job,
                             const ScheduleOptions& options);

}  // namespace renzan::cluster
