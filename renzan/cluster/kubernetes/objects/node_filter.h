#pragma once

// Which nodes a pod may run on, as its template says beyond nodeSelector: required node affinity
// and tolerations. kube-scheduler does not see our pods, so nobody else checks these.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

// The taint of nodes reserved for Renzan: all workers tolerate it.
inline constexpr const char* kDedicatedTaint = "renzan.dev/dedicated";

struct Taint {
  std::string key, value, effect;  // NoSchedule or NoExecute
  bool operator==(const Taint&) const = default;
};

// The taints in a list that keep away pods that do not tolerate them.
std::vector<Taint> TaintsFrom(const nlohmann::json& taints);

class NodeFilter {
 public:
  // Reads a pod's spec. Throws Error kConfig if it asks for something that the scheduler does not
  // support: nothing is ignored.
  explicit NodeFilter(const nlohmann::json& pod_spec);
  // The filter of a pod of which nothing is known: it tolerates nothing.
  NodeFilter() = default;

  bool Admits(const std::string& node, const Labels& labels,
              const std::vector<Taint>& taints) const;
  // Equal filters admit the same nodes.
  bool operator==(const NodeFilter&) const = default;

 private:
  struct Toleration {
    std::string key, value, effect;  // empty: any
    bool any_value = false;
    bool for_a_while = false;  // has tolerationSeconds: evicted after that time
    bool operator==(const Toleration&) const = default;
  };
  struct Requirement {
    std::string key, operation;
    std::vector<std::string> values;
    bool of_name = false;  // about a field: metadata.name
    bool operator==(const Requirement&) const = default;
  };
  using Term = std::vector<Requirement>;  // all of them must hold

  static Requirement RequirementFrom(const nlohmann::json& object, bool of_name);
  static bool Holds(const Requirement& requirement, const std::string& node, const Labels& labels);
  bool Tolerates(const Taint& taint) const;

  std::vector<Toleration> tolerations_;
  bool has_terms_ = false;
  std::vector<Term> terms_;  // one of them must hold
};

}  // namespace renzan::cluster::kubernetes
