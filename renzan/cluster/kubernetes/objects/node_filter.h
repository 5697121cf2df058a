#pragma once

// Which nodes a pod may run on, as its template says beyond nodeSelector: required node affinity
// and tolerations. kube-scheduler does not see our pods, so that nobody else looks at these.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

// Nodes that are kept for Renzan: all workers tolerate it.
inline constexpr const char* kDedicatedTaint = "renzan.dev/dedicated";

struct Taint {
  std::string key, value, effect;  // NoSchedule or NoExecute
  bool operator==(const Taint&) const = default;
};

// Those of a list of taints that keep pods away which do not tolerate them.
std::vector<Taint> TaintsFrom(const nlohmann::json& taints);

class NodeFilter {
 public:
  // Of a pod's spec. Throws Error kConfig if it asks for what the scheduler cannot keep: it is
  // never ignored.
  explicit NodeFilter(const nlohmann::json& pod_spec);
  // A pod of which nothing is known: it tolerates nothing.
  NodeFilter() = default;

  bool Admits(const std::string& node, const Labels& labels,
              const std::vector<Taint>& taints) const;
  // The same nodes are admitted by filters that are equal.
  bool operator==(const NodeFilter&) const = default;

 private:
  struct Toleration {
    std::string key, value, effect;  // empty: any
    bool any_value = false;
    bool for_a_while = false;  // tolerationSeconds: evicted after that
    bool operator==(const Toleration&) const = default;
  };
  struct Requirement {
    std::string key, operation;
    std::vector<std::string> values;
    bool of_name = false;  // a field: metadata.name
    bool operator==(const Requirement&) const = default;
  };
  using Term = std::vector<Requirement>;  // all of them

  static Requirement RequirementFrom(const nlohmann::json& object, bool of_name);
  static bool Holds(const Requirement& requirement, const std::string& node, const Labels& labels);
  bool Tolerates(const Taint& taint) const;

  std::vector<Toleration> tolerations_;
  bool has_terms_ = false;
  std::vector<Term> terms_;  // one of them
};

}  // namespace renzan::cluster::kubernetes
