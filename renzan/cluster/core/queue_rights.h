#pragma once

// Who may use a queue, and what its jobs may ask for. Checked when a job is submitted
// (spec/queue_rights.h): the scheduler never reads it.

#include <optional>
#include <string>
#include <vector>

namespace renzan::cluster {

// Whoever is on one of these lists is a member; all empty: nobody is. In ascending order.
struct QueueMembers {
  std::vector<std::string> users, groups;
  std::vector<std::string> namespaces;  // of Kubernetes

  bool operator==(const QueueMembers&) const = default;
};

struct QueueRights {
  std::optional<QueueMembers> members;  // none: everybody may use the queue
  std::optional<int> max_priority;      // of its jobs; none: what limits.max_priority says
  bool only_preemptible = false;        // it takes no job that is not preemptible

  bool operator==(const QueueRights&) const = default;
};

}  // namespace renzan::cluster
