#pragma once

// Parents of queues: which queue may be the parent of others, what it is guaranteed, and what
// becomes of its own jobs. The same for the daemon and for Kubernetes, which each say in their own
// words what is wrong.

#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

struct ParentFault {
  enum class Kind {
    // Why `queue` has no parent, although it names one:
    kNoQueue,    // there is none of that name
    kCycle,      // its parents come back to it
    kTooMany,    // more are above it than Queue::kMostLevels allows
    kTakesJobs,  // that one has a limit, fair share or rights, which are for jobs of its own
    // `queue` is a parent:
    kTooLittle,  // and is given a smaller guarantee than its queues have together
  };
  Kind kind;
  std::string queue;
  std::string parent = {};  // that the queue names
  std::string above = {};   // kCycle: the queues on the way from the queue back to it
  // kTooLittle: the first such resource, what the parent is given of it, and what its queues are.
  int resource = 0;
  int64_t given = 0, of_queues = 0;
};

// Sets Queue::parent of all queues: `named` has the parent's name by the queue's. A parent is
// guaranteed what its queues are, unless it is given more. Queues whose parent is none have none;
// the faults are in the order of the snapshot's queues, those of parents last.
std::vector<ParentFault> SetParents(const std::map<std::string, std::string>& named,
                                    Snapshot& snapshot);

// The index of a queue without rights for what still runs in a queue that takes no jobs any more:
// another one than the parent of that name, whose guarantee is for its queues.
int RemovedQueue(Snapshot& snapshot, const std::string& name);

// Why a job of the parent does not start.
std::string WhyParentHolds(const std::string& parent);

}  // namespace renzan::cluster::spec
