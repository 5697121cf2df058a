#pragma once

// A snapshot's nodes, queues and users as JSON for tables, for this machine's daemon and for
// Kubernetes. Amounts are cores, MiB and devices. Pure functions.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

struct QueueUse {
  Resources used, borrowed;
  int pending = 0, running = 0;  // jobs
};

// In the order of the snapshot's queues. What its queues use counts for a parent, too.
std::vector<QueueUse> UseOfQueues(const Snapshot& snapshot);

// {"nodes": [{"name", "pool", "state", "until", "reason", "avoided_by": [{"user", "failed_jobs",
// "until"}], "spot", "labels", "capacity", "used", "jobs"}]}
nlohmann::ordered_json NodesDocument(const Snapshot& snapshot);

// {"nodes": how many in each state, "resources", "pools", "queues", "users"}. `max_priority`: of
// jobs in queues that say nothing about it.
nlohmann::ordered_json UseDocument(const Snapshot& snapshot, int64_t max_priority);

}  // namespace renzan::cluster::spec
