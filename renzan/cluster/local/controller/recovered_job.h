#pragma once

// A job from the store, as this version of the program sees it under the current configuration.

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

struct RecoveredJob {
  spec::JobSpec spec;
  Job job;  // pending; to be added to the snapshot
};

// A job whose specification cannot be read, or that names something missing from the configuration,
// is held (Job::held): if it runs it may end, but it is not started again. A queue that the
// configuration no longer has is added to the snapshot as removed; it takes nothing from other
// queues.
RecoveredJob JobFromRecord(Snapshot& snapshot, const JobRecord& record);

}  // namespace renzan::cluster::local
