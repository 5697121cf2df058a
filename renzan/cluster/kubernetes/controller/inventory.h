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

// Its value is the node's pool. Nodes without it are not used.
inline constexpr const char* kPoolLabel = "renzan.dev/pool";

// A node that is not ready yet is given up after so long, or after its pool's boot time.
inline constexpr TimeMs kLongestBootMs = 10 * kMinute;

class Inventory {
 public:
  using Topology = std::vector<std::pair<std::string, std::string>>;

  explicit Inventory(Snapshot& snapshot);

  // The API's labels of topology levels, widest first.
  void SetTopology(const Topology& topology, TimeMs now);
  // From an announcement that a machine will be taken away until it is, if nothing says more.
  void SetNotice(TimeMs notice_ms) { notice_ms_ = notice_ms; }

  void Put(const KubernetesNode& node, TimeMs now);
  // As it is after a write of ours: what a watch shows of earlier versions is no news.
  void PutOwn(const KubernetesNode& node, TimeMs now);
  void Remove(const std::string& name, TimeMs now);
  // Puts all nodes of a pool again: what is known of the pool has changed.
  void PutAgain(const std::string& pool, TimeMs now);

  // The label that a node must have so that the filter admits it, which all have that it admits;
  // none: it admits all that are known.
  std::optional<std::pair<std::string, std::string>> LabelFor(const NodeFilter& filter);
  // Forgets filters of which `is_used(filter, key of its label)` says no, if there are many by now:
  // their labels may stand for others later.
  void DropFilters(const std::function<bool(const NodeFilter&, const std::string&)>& is_used);
  // Whether, since the last call, an answer of LabelFor() has changed.
  bool TakeFiltersChanged() { return std::exchange(filters_changed_, false); }
  // As Put() labels a node.
  Labels LabelsOf(const std::string& node, const Labels& labels, const std::vector<Taint>& taints);
  // A new one if there is none.
  int PoolNamed(const std::string& name);
  // By name, as they were last reported.
  const std::map<std::string, KubernetesNode>& known() const { return known_; }

  // Brings the capacities of touched nodes up to date. `of_gangs`: whether the pod is a worker
  // whose job holds its room already.
  void Refresh(const std::set<std::string>& touched, const PodBook& pods,
               const std::function<bool(const Pod&)>& of_gangs);

  // -1: not one of ours.
  int Find(const std::string& name) const;
  // As gone if it is not known.
  int FindOrAdd(const std::string& name, TimeMs now);
  // By which others reach it; its name if it has not said.
  std::string AddressOf(const std::string& node) const;
  // Whether the job's workers fit there now, on nodes that take work.
  bool HasRoom(const Placement& placement, const Job& job) const;
  // Nodes that have failed or gone since the last call.
  std::vector<int> TakeLost() { return std::exchange(lost_, {}); }
  // Nodes that were reported since the last call.
  std::set<std::string> TakeTouched() { return std::exchange(touched_, {}); }
  // Whether anything has changed since the last call that decisions depend on.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  static constexpr size_t kFewFilters = 32;

  struct Filter {
    NodeFilter filter;
    bool excludes = false;  // a node or pool that is known
  };

  void SetState(int node, NodeState state, TimeMs until, TimeMs now);
  TimeMs LeavesAt(const KubernetesNode& node, const Node& before, TimeMs now) const;
  bool IsBooting(const KubernetesNode& node, int pool, NodeState before, TimeMs now) const;

  Topology topology_;
  TimeMs notice_ms_ = 2 * kMinute;
  Snapshot& snapshot_;
  std::map<size_t, Filter> filters_;  // by the number of its label
  size_t many_filters_ = kFewFilters;
  bool filters_changed_ = false;
  std::map<std::string, int> index_;
  std::map<std::string, KubernetesNode> known_;
  std::map<std::string, int64_t> written_;  // versions, by name
  // What nodes have for gangs, even if gangs hold more.
  std::map<int, Resources> offered_;
  std::vector<int> lost_;
  std::set<std::string> touched_;
  bool changed_ = false;
};

}  // namespace renzan::cluster::kubernetes
