#pragma once

// A snapshot's nodes, queues and users as JSON for tables, for this machine's daemon and for
// Kubernetes. Amounts are cores, MiB and devices. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

struct QueueUse {
  Resources used, borrowed;
  int pending = 0, running = 0;  // jobs
};

// In the order of the snapshot's queues.
std::vector<QueueUse> UseOfQueues(const Snapshot& snapshot);

// {"nodes": [{"name", "pool", "state", "until", "reason", "spot", "labels", "capacity", "used",
// "jobs"}]}
nlohmann::ordered_json NodesDocument(const Snapshot& snapshot);

// {"nodes": how many in each state, "resources", "pools", "queues", "users"}
nlohmann::ordered_json UseDocument(const Snapshot& snapshot);

}  // namespace renzan::cluster::spec
