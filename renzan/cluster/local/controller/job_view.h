#pragma once

// What the controller answers about jobs. Plain data, copied.

#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/contract/run_status.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

struct JobView {
  JobRecord record;
  std::optional<Job> scheduled;  // until it ends
  NamedPlacement placement;      // while it has workers
  std::string reason;            // why it is pending, in a word
  std::optional<RunProgress> progress;
  std::string warning;  // for its owner; else empty
};

// Selects jobs that have not ended, and the newest of those that have.
struct JobFilter {
  EndedFilter ended;      // its queue, user and state apply to all jobs
  int most_ended = 1000;  // of jobs that have ended
};

struct JobList {
  std::vector<JobView> jobs;  // sorted by id; without specification and manifest
  int64_t more = 0;           // older jobs that have ended too
};

}  // namespace renzan::cluster::local
