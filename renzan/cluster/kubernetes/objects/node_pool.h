#pragma once

// A NodePool: what is known of the nodes with a pool's label, and the object whose replicas are its
// machines.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"
#include "renzan/cluster/kubernetes/objects/node_filter.h"

namespace renzan::cluster::kubernetes {

// Any object with a scale subresource.
struct ScaleRef {
  Kind kind;
  std::string ns, name;

  std::string path() const { return kind.plural + " " + (ns.empty() ? name : ns + "/" + name); }
  bool operator==(const ScaleRef& other) const {
    return ApiVersion(kind) == ApiVersion(other.kind) && path() == other.path();
  }
};

struct NodePool {
  std::string name;
  int64_t generation = 0;
  // Without capacity, and without the labels that the scheduler derives itself.
  Pool pool;
  Amounts capacity;           // of one node, if it is stated
  std::vector<Taint> taints;  // that a new node has
  std::optional<ScaleRef> scale;
  // From the status: when the machines that are not nodes yet were bought.
  std::vector<TimeMs> booting_since;
  // From the status: since when nodes have had no workers, for those that have had none for a
  // while.
  std::map<std::string, TimeMs> idle_since;
  std::string invalid;  // why the spec cannot be used; empty: it can
  std::shared_ptr<const nlohmann::json> object;
};

NodePool NodePoolFrom(std::shared_ptr<const nlohmann::json> object);

}  // namespace renzan::cluster::kubernetes
