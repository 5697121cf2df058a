// Nodes that are bought, interrupted, replaced and returned.

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/simulate/simulation.h"
#include "renzan/cluster/spec/cluster_config.h"

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

// A node of the pool with a new number.
Node NewNode(const Snapshot& snapshot, int pool) {
  const auto number = std::count_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                    [&](const Node& node) { return node.pool == pool; });
  return spec::MakeNode(snapshot, pool, static_cast<int>(number));
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

void Simulation::FailNode(int node) {
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

void Simulation::Buy(const ScaleOut& order) {
  const Pool& pool = cluster_.snapshot().pools[order.pool];
  CHECK_MSG(CountNodes(cluster_.snapshot(), order.pool) + order.nodes <= pool.max_nodes,
            "more nodes of pool {} are bought than its maximum", pool.name);
  const TimeMs ready = cluster_.now() + std::max<TimeMs>(1, pool.boot_ms);
  for (int bought = 0; bought < order.nodes; ++bought) {
    const std::vector<Node>& nodes = cluster_.snapshot().nodes;
    const auto gone = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) {
      return node.pool == order.pool && node.state == NodeState::kGone;
    });
    int node = static_cast<int>(gone - nodes.begin());
    if (gone == nodes.end()) {
      Node bought_node = NewNode(cluster_.snapshot(), order.pool);
      bought_node.state = NodeState::kBooting;
      bought_node.until = ready;
      node = cluster_.AddNode(bought_node);
      node_version_.push_back(0);
    } else {
      cluster_.SetNode(node, NodeState::kBooting, ready);
    }
    Expect(ready, What::kNodeReady, node, ++node_version_[node]);
  }
  result_.totals.nodes_bought += order.nodes;
}

void Simulation::Return(const ScaleIn& order) {
  CHECK_MSG(cluster_.IsEmpty(order.node), "{} is returned, but is not empty",
            cluster_.snapshot().nodes[order.node].name);
  ++node_version_[order.node];
  cluster_.SetNode(order.node, NodeState::kGone, kNever);
}

}  // namespace renzan::cluster::simulate
