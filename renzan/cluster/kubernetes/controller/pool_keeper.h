#pragma once

// Pools whose nodes are bought and returned: NodePools, and the replicas of the objects that they
// name.
//
// These replicas are the only truth about machines. Those in excess of the existing nodes are
// booting, for this leader and for the next one. A decision to buy becomes a patch of the replicas
// that it was based on; if that fails, or they have changed meanwhile, the decision is forgotten
// and another cycle decides on the new state. So nothing is bought twice.
//
// A node is returned when it is idle and has only pods that run on every node: it gets the taint
// kReturningTaint, so that nothing starts there, and then the replicas are lowered. The owner
// decides which machine goes (docs/kubernetes-nodes.md). If another one has gone, or the replicas
// were not lowered, there is no extra node: the taint is removed, and the node takes work again.
// While there are more nodes than replicas, nothing is bought, because a leaving node would be
// taken for a new one.
//
// For one thread.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/controller/kept_status.h"
#include "renzan/cluster/kubernetes/controller/pod_book.h"
#include "renzan/cluster/kubernetes/controller/pool_facts.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"

namespace renzan::cluster::kubernetes {

class PoolKeeper {
 public:
  PoolKeeper(Snapshot& snapshot, Inventory& inventory, const PodBook& pods, Requests& requests,
             const Clock& clock);

  // As a watch shows it.
  void Put(std::shared_ptr<const Json> object);
  void Remove(const std::string& name);
  // For nodes of all priced pools.
  void SetBudget(double per_hour) { budget_per_hour_ = per_hour; }

  // Updates the snapshot's pools and booting nodes after nodes have changed. Reads replicas that
  // have not been read for a while.
  void Refresh();
  // Called when the scheduler has decided and the snapshot has changed.
  void Perform(const NodeChange& change);
  // Called when all decisions of a cycle have been performed: earlier ones that it did not repeat
  // are dropped.
  void HasDecided();
  // Carries the decisions out and writes statuses. False: something failed; the next call tries
  // again, or it is decided again.
  bool Flush();
  // When Refresh() next has something to do even if nothing changes.
  TimeMs NextLook() const;
  // Whether anything that decisions depend on has changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  struct Managed {
    NodePool object;
    KeptStatus status;
    std::optional<int> replicas;  // unknown: never scaled
    TimeMs look_at = 0;
    // Why nodes cannot be bought or returned: the replicas cannot be read, or the last decision
    // could not be carried out.
    std::string unreadable, unscaled;
    const std::string& trouble() const { return unreadable.empty() ? unscaled : unreadable; }
    PoolMembers members;
    std::vector<TimeMs> booting_since;
    std::map<std::string, TimeMs> idle_since;  // by node, until those nodes are known
    int overdue = 0;                           // of these
    // Nodes of the snapshot that stand for machines that are not nodes yet.
    std::vector<int> slots;
    // Decided but not carried out yet.
    int bought = 0;
    std::vector<int> returned;
  };

  void Look();
  void CountMembers();
  bool KeepThoseThatStay();
  void SetFacts(Managed& pool);
  void SetSlots(Managed& pool);
  bool Scale(Managed& pool);
  bool SetTaint(const std::string& node, bool returning);
  bool HasForeignPods(const std::string& node) const;
  void RestoreIdle(Managed& pool);
  Json IdleSince(const Managed& pool, const std::set<int>& used) const;
  Json StatusOf(const Managed& pool, const std::set<int>& used) const;
  TimeMs Now() const { return clock_.UnixMs(); }

  Snapshot& snapshot_;
  Inventory& inventory_;
  const PodBook& pods_;
  Requests& requests_;
  const Clock& clock_;
  double budget_per_hour_ = std::numeric_limits<double>::infinity();
  std::map<std::string, Managed> pools_;
  std::map<std::string, PoolMembers> members_;
  bool changed_ = false;
};

}  // namespace renzan::cluster::kubernetes
