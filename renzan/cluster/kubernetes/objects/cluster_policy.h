#pragma once

// A ClusterPolicy: what an administrator decides about the whole cluster. Only the one named
// kPolicyName counts.

#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/namespace_limits.h"

namespace renzan::cluster::kubernetes {

inline constexpr const char* kPolicyName = "default";

// The defaults are those of a cluster without a ClusterPolicy.
struct ClusterPolicy {
  ScheduleOptions scheduling;
  std::map<std::string, int64_t> caps;  // GPUs of a namespace's running jobs
  std::map<std::string, std::vector<QuotaOverride>> overrides;
  NamespaceLimits limits;
  double budget_per_hour = std::numeric_limits<double>::infinity();
  // The API's labels for topology levels, widest first.
  std::vector<std::pair<std::string, std::string>> topology = {
      {"zone", "topology.kubernetes.io/zone"}, {"rack", "renzan.dev/rack"}};
  // The time between the announcement that a machine will be taken away and its end, unless stated
  // otherwise.
  TimeMs notice_ms = 2 * kMinute;
  TimeMs keep_ended_ms = 0;  // 0: for ever
};

// Throws Error kConfig for the first error found.
ClusterPolicy ClusterPolicyFrom(const nlohmann::json& spec);

// The policy in force, for processes that do not lead: the object's spec; if that is invalid, the
// earlier one recorded in its status; else the defaults.
ClusterPolicy HoldingPolicy(const nlohmann::json& object);

}  // namespace renzan::cluster::kubernetes
