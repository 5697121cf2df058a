#pragma once

// The machines: nodes of the cluster that carry the label of a pool, as nodes of the snapshot.
//
// A node's capacity is what its kubelet offers, less what pods of others use there. It is never
// less than what gangs have there: then nothing more fits. For one thread.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/pod_book.h"
#include "renzan/cluster/kubernetes/objects/node.h"

namespace renzan::cluster::kubernetes {

// The label's value is the node's pool. Nodes without it are not used.
inline constexpr const char* kPoolLabel = "renzan.dev/pool";

// A node that is not ready yet is given up after this time, or after its pool's boot time.
inline constexpr TimeMs kLongestBootMs = 10 * kMinute;

class Inventory {
 public:
  using Topology = std::vector<std::pair<std::string, std::string>>;

  explicit Inventory(Snapshot& snapshot);

  // The API's labels for topology levels, widest first.
  void SetTopology(const Topology& topology, TimeMs now);
  // The time between the announcement that a machine will be taken away and its end, unless stated
  // otherwise.
  void SetNotice(TimeMs notice_ms) { notice_ms_ = notice_ms; }

  void Put(const KubernetesNode& node, TimeMs now);
  // Puts a node as it is after a write of ours: earlier versions that a watch shows are not news.
  void PutOwn(const KubernetesNode& node, TimeMs now);
  void Remove(const std::string& name, TimeMs now);
  // Puts all nodes of a pool again, because what is known of the pool has changed.
  void PutAgain(const std::string& pool, TimeMs now);

  // A label that all nodes admitted by the filter have, and no others; nothing if the filter admits
  // all known nodes.
  std::optional<std::pair<std::string, std::string>> LabelFor(const NodeFilter& filter);
  // If there are many filters by now, forgets those for which `is_used(filter, key of its label)`
  // is false: their labels may later stand for other filters.
  void DropFilters(const std::function<bool(const NodeFilter&, const std::string&)>& is_used);
  // Whether a result of LabelFor() has changed since the last call.
  bool TakeFiltersChanged() { return std::exchange(filters_changed_, false); }
  // Labels as Put() would set them.
  Labels LabelsOf(const std::string& node, const Labels& labels, const std::vector<Taint>& taints);
  // The pool's index; adds it if there is none.
  int PoolNamed(const std::string& name);
  // Nodes by name, as last reported.
  const std::map<std::string, KubernetesNode>& known() const { return known_; }

  // Updates the capacities of touched nodes. `of_gangs`: whether the pod is a worker whose job
  // already holds its room.
  void Refresh(const std::set<std::string>& touched, const PodBook& pods,
               const std::function<bool(const Pod&)>& of_gangs);

  // -1 if the node is not ours.
  int Find(const std::string& name) const;
  // Adds the node as gone if it is not known.
  int FindOrAdd(const std::string& name, TimeMs now);
  // The address by which others reach it; its name if it has not reported one.
  std::string AddressOf(const std::string& node) const;
  // What gangs may use of the node, whoever uses it now; null if nothing is known of it.
  const Resources* Offered(int node) const;
  // Nodes that have failed or gone since the last call.
  std::vector<int> TakeLost() { return std::exchange(lost_, {}); }
  // Nodes that were reported since the last call.
  std::set<std::string> TakeTouched() { return std::exchange(touched_, {}); }
  // Whether anything that decisions depend on has changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  static constexpr size_t kFewFilters = 32;

  struct Filter {
    NodeFilter filter;
    bool excludes = false;  // excludes a known node or pool
  };

  void SetState(int node, NodeState state, TimeMs until, TimeMs now);
  TimeMs LeavesAt(const KubernetesNode& node, const Node& before, TimeMs now) const;
  bool IsBooting(const KubernetesNode& node, int pool, NodeState before, TimeMs now) const;

  Topology topology_;
  TimeMs notice_ms_ = 2 * kMinute;
  Snapshot& snapshot_;
  std::map<size_t, Filter> filters_;  // by label number
  size_t many_filters_ = kFewFilters;
  bool filters_changed_ = false;
  std::map<std::string, int> index_;
  std::map<std::string, KubernetesNode> known_;
  std::map<std::string, int64_t> written_;  // versions written by us, by name
  // What nodes offer to gangs, even if gangs hold more.
  std::map<int, Resources> offered_;
  std::vector<int> lost_;
  std::set<std::string> touched_;
  bool changed_ = false;
};

}  // namespace renzan::cluster::kubernetes
