// Nodes that are bought, interrupted, replaced and returned.

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/simulate/simulation.h"

namespace renzan::cluster::simulate {
namespace {

// Time until the next interruption of a node: exponential, drawn again whenever the node comes up.
TimeMs DrawLifetime(uint64_t seed, int node, int64_t version, double per_hour) {
  const Philox::Block block =
      Philox::Draw(PhiloxKey(seed, "simulate/interruption"), static_cast<uint64_t>(node),
                   static_cast<uint64_t>(version));
  const double uniform = (static_cast<double>(block[0]) + 0.5) * 0x1.0p-32;
  return static_cast<TimeMs>(std::ceil(std::min(-std::log(uniform) / per_hour * 3.6e6, 1e15)));
}

int CountNodes(const Snapshot& snapshot, int pool) {
  return static_cast<int>(std::count_if(
      snapshot.nodes.begin(), snapshot.nodes.end(),
      [&](const Node& node) { return node.pool == pool && node.state != NodeState::kGone; }));
}

}  // namespace

void Simulation::BeginNodes() {
  const std::vector<Node> nodes = cluster_.snapshot().nodes;
  node_version_.resize(nodes.size());
  for (size_t index = 0; index < nodes.size(); ++index) {
    const int node = static_cast<int>(index);
    if (nodes[index].state == NodeState::kReady) NodeIsReady(node);
    if (nodes[index].until == kNever) continue;
    if (nodes[index].state == NodeState::kBooting)
      Expect(nodes[index].until, What::kNodeReady, node, 0);
    if (nodes[index].state == NodeState::kDraining)
      Expect(nodes[index].until, What::kNodeGone, node, 0);
  }
}

void Simulation::NodeIsReady(int node) {
  if (cluster_.snapshot().nodes[node].state != NodeState::kReady)
    cluster_.SetNode(node, NodeState::kReady, kNever);
  const int pool = cluster_.snapshot().nodes[node].pool;
  if (pool < 0) return;
  const double hazard = cluster_.snapshot().pools[pool].interruptions_per_hour;
  if (hazard <= 0) return;
  const int64_t version = ++node_version_[node];
  Expect(cluster_.now() + DrawLifetime(options_.seed, node, version, hazard), What::kNodeNotice,
         node, version);
}

void Simulation::NodeIsTaken(int node) {
  if (options_.notice_ms == 0) {
    FailNode(node);
    return;
  }
  const TimeMs until = cluster_.now() + options_.notice_ms;
  cluster_.SetNode(node, NodeState::kDraining, until);
  Expect(until, What::kNodeGone, node, node_version_[node]);
}

// The work of its jobs since they last saved it is lost.
void Simulation::EndWorkersOn(int node) {
  for (const Job& job : cluster_.snapshot().jobs) {
    if (IsOn(job.placement, node)) {
      EndAttempt(job.id, /*node_failed=*/true);
    } else if (IsOn(job.target, node)) {
      // It finishes saving its work, and then waits.
      cluster_.LoseTarget(job.id);
      lifecycle_.Evict(job.id, "the node to which it was to move failed");
    }
  }
}

void Simulation::FailNode(int node) {
  EndWorkersOn(node);
  cluster_.FailNode(node);
  ++result_.totals.nodes_failed;
  const int64_t version = ++node_version_[node];
  holds_changed_ = true;
  const int pool = cluster_.snapshot().nodes[node].pool;
  if (pool < 0) return;
  const Pool& from = cluster_.snapshot().pools[pool];
  if (CountNodes(cluster_.snapshot(), pool) >= from.min_nodes) return;
  const TimeMs ready = cluster_.now() + std::max<TimeMs>({1, from.boot_ms, options_.replace_ms});
  cluster_.SetNode(node, NodeState::kBooting, ready);
  Expect(ready, What::kNodeReady, node, version);
}

void Simulation::Commit(const NodeChange& change) {
  cluster_.BeginNodeChange(change.index);
  node_version_.resize(std::max<size_t>(node_version_.size(), change.index + 1));
}

void Simulation::Change(const NodeChange& change) {
  cluster_.FinishNodeChange(change.index);
  const int64_t version = ++node_version_[change.index];
  result_.totals.nodes_bought += change.node.state != NodeState::kGone;
  if (change.node.state == NodeState::kBooting)
    Expect(change.node.until, What::kNodeReady, change.index, version);
  if (change.node.state != NodeState::kReady) return;
  NodeIsReady(change.index);
  changed_ = true;
}

}  // namespace renzan::cluster::simulate
