#include "renzan/cluster/kubernetes/controller/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/place/placements.h"
#include "renzan/cluster/core/place/sites.h"

namespace renzan::cluster::kubernetes {
namespace {

TimeMs BootMs(const Pool& pool) { return std::max(pool.boot_ms, kLongestBootMs); }

// The label's value is what `explain` shows.
std::pair<std::string, std::string> FilterLabel(size_t filter) {
  return {fmt::format("renzan.dev/admits-{}", filter),
          "pods with its tolerations and node affinity"};
}

}  // namespace

Inventory::Inventory(Snapshot& snapshot) : snapshot_(snapshot) {
  // Always present, so that the order of the first node's resources does not matter.
  auto& names = snapshot_.resource_names;
  if (std::find(names.begin(), names.end(), kPodsResource) == names.end())
    names.push_back(kPodsResource);
}

void Inventory::SetTopology(const Topology& topology, TimeMs now) {
  if (topology_ == topology) return;
  topology_ = topology;
  snapshot_.topology_levels.clear();
  for (const auto& [level, label] : topology_) snapshot_.topology_levels.push_back(level);
  const auto known = known_;
  for (const auto& [name, node] : known) Put(node, now);
  changed_ = true;
}

int Inventory::Find(const std::string& name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? -1 : at->second;
}

int Inventory::FindOrAdd(const std::string& name, TimeMs now) {
  const auto [at, added] = index_.try_emplace(name, static_cast<int>(snapshot_.nodes.size()));
  if (added)
    snapshot_.nodes.push_back({.name = name, .state = NodeState::kGone, .idle_since = now});
  return at->second;
}

std::string Inventory::AddressOf(const std::string& node) const {
  const auto at = known_.find(node);
  return at == known_.end() || at->second.address.empty() ? node : at->second.address;
}

const Resources* Inventory::Offered(int node) const {
  const auto at = offered_.find(node);
  return at == offered_.end() ? nullptr : &at->second;
}

int Inventory::PoolNamed(const std::string& name) {
  std::vector<Pool>& pools = snapshot_.pools;
  for (size_t pool = 0; pool < pools.size(); ++pool)
    if (pools[pool].name == name) return static_cast<int>(pool);
  pools.push_back({.name = name});
  return static_cast<int>(pools.size()) - 1;
}

void Inventory::PutOwn(const KubernetesNode& node, TimeMs now) {
  written_[node.name] = node.version;
  Put(node, now);
}

void Inventory::Put(const KubernetesNode& node, TimeMs now) {
  if (const auto written = written_.find(node.name); written != written_.end()) {
    if (node.version < written->second) return;
    if (node.version > written->second) written_.erase(written);
  }
  const auto pool = node.labels.find(kPoolLabel);
  if (pool == node.labels.end()) {
    Remove(node.name, now);
    return;
  }
  const int at = FindOrAdd(node.name, now);
  const int pool_index = PoolNamed(pool->second);
  Labels labels = LabelsOf(node.name, node.labels, node.taints);
  Node& mine = snapshot_.nodes[at];
  const bool spot = snapshot_.pools[pool_index].spot;
  if (mine.labels != labels || mine.pool != pool_index || mine.spot != spot) changed_ = true;
  mine.labels = std::move(labels);
  mine.pool = pool_index;
  mine.spot = spot;
  if (IsBooting(node, pool_index, mine.state, now))
    SetState(at, NodeState::kBooting, node.created + BootMs(snapshot_.pools[pool_index]), now);
  else if (!node.ready)
    SetState(at, NodeState::kGone, kNever, now);
  else if (!node.leaving.empty())
    SetState(at, NodeState::kDraining, LeavesAt(node, mine, now), now);
  else if (node.draining || node.returning)
    SetState(at, NodeState::kDraining, kNever, now);
  else
    SetState(at, node.cordoned ? NodeState::kCordoned : NodeState::kReady, kNever, now);
  known_.insert_or_assign(node.name, node);
  touched_.insert(node.name);
}

// Counted from the first announcement.
TimeMs Inventory::LeavesAt(const KubernetesNode& node, const Node& before, TimeMs now) const {
  if (node.leaving_since) return std::min(*node.leaving_since, now) + notice_ms_;
  const bool is_known = before.state == NodeState::kDraining && before.until != kNever;
  return is_known ? before.until : now + notice_ms_;
}

void Inventory::PutAgain(const std::string& pool, TimeMs now) {
  const auto known = known_;
  for (const auto& [name, node] : known)
    if (const auto label = node.labels.find(kPoolLabel);
        label != node.labels.end() && label->second == pool)
      Put(node, now);
}

// A machine that was bought becomes a node before it takes work: its kubelet starts, and only then
// are the devices found that its pool promises.
bool Inventory::IsBooting(const KubernetesNode& node, int pool, NodeState before,
                          TimeMs now) const {
  const Pool& of = snapshot_.pools[pool];
  if (!IsScaled(of) || node.silent || now >= node.created + BootMs(of)) return false;
  if (before != NodeState::kBooting && before != NodeState::kGone) return false;
  if (!node.ready) return true;
  const Resources offered = CapacityFrom(node.allocatable, snapshot_);
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (of.capacity[kind] > 0 && offered[kind] == 0) return true;
  return false;
}

Labels Inventory::LabelsOf(const std::string& node, const Labels& given,
                           const std::vector<Taint>& taints) {
  Labels labels = given;
  for (const auto& [level, label] : topology_)
    if (const auto domain = given.find(label); domain != given.end())
      labels[level] = domain->second;
  for (auto& [number, each] : filters_) {
    if (each.filter.Admits(node, given, taints))
      labels.insert(FilterLabel(number));
    else if (!std::exchange(each.excludes, true))
      filters_changed_ = true;
  }
  return labels;
}

std::optional<std::pair<std::string, std::string>> Inventory::LabelFor(const NodeFilter& filter) {
  auto at = std::find_if(filters_.begin(), filters_.end(),
                         [&](const auto& each) { return each.second.filter == filter; });
  if (at == filters_.end()) {
    size_t number = 0;
    while (filters_.contains(number)) ++number;
    at = filters_.emplace(number, Filter{filter}).first;
    for (const auto& [name, node] : known_)
      if (filter.Admits(name, node.labels, node.taints))
        snapshot_.nodes[Find(name)].labels.insert(FilterLabel(number));
      else
        at->second.excludes = true;
  }
  if (!at->second.excludes) return std::nullopt;
  return FilterLabel(at->first);
}

void Inventory::DropFilters(
    const std::function<bool(const NodeFilter&, const std::string&)>& is_used) {
  if (filters_.size() < many_filters_) return;
  for (auto at = filters_.begin(); at != filters_.end();) {
    const std::string key = FilterLabel(at->first).first;
    if (is_used(at->second.filter, key)) {
      ++at;
      continue;
    }
    for (Node& node : snapshot_.nodes) node.labels.erase(key);
    for (Pool& pool : snapshot_.pools) pool.labels.erase(key);
    at = filters_.erase(at);
  }
  many_filters_ = kFewFilters + 2 * filters_.size();
}

void Inventory::Remove(const std::string& name, TimeMs now) {
  known_.erase(name);
  written_.erase(name);
  if (const int at = Find(name); at >= 0) SetState(at, NodeState::kGone, kNever, now);
}

void Inventory::SetState(int at, NodeState state, TimeMs until, TimeMs now) {
  Node& node = snapshot_.nodes[at];
  if (node.state == state && node.until == until) return;
  if (state == NodeState::kGone) lost_.push_back(at);
  if (!IsThere(node.state)) node.idle_since = now;
  node.state = state;
  node.until = until;
  changed_ = true;
}

void Inventory::Refresh(const std::set<std::string>& touched, const PodBook& pods,
                        const std::function<bool(const Pod&)>& of_gangs) {
  std::map<int, Resources> held_on;
  for (const std::string& name : touched)
    if (const int at = Find(name); at >= 0) held_on[at] = {};
  // Gangs may no longer hold more than that.
  for (const auto& [at, offered] : offered_)
    if (snapshot_.nodes[at].capacity != offered) held_on[at] = {};
  for (const Job& job : snapshot_.jobs)
    for (const Placed& placed : HeldBy(job))
      if (const auto held = held_on.find(placed.node); held != held_on.end())
        held->second += snapshot_.worker_requests[job.request].per_worker * placed.workers;
  for (const auto& [at, held] : held_on) {
    const std::string& name = snapshot_.nodes[at].name;
    const auto known = known_.find(name);
    if (known == known_.end()) continue;
    Amounts of_others;
    for (const Pod* pod : pods.OnNode(name))
      if (!of_gangs(*pod)) of_others += pod->request;
    Amounts left = known->second.allocatable;
    for (const auto& [kind, amount] : of_others) left[kind] -= amount;
    Resources capacity = offered_[at] = CapacityFrom(left, snapshot_);
    for (int kind = 0; kind < kMaxResources; ++kind)
      capacity[kind] = std::max({capacity[kind], held[kind], int64_t{0}});
    // A booting node offers nothing yet, and another one would be bought in its place.
    if (const Node& node = snapshot_.nodes[at]; node.state == NodeState::kBooting)
      capacity = snapshot_.pools[node.pool].capacity;
    if (snapshot_.nodes[at].capacity == capacity) continue;
    snapshot_.nodes[at].capacity = capacity;
    changed_ = true;
  }
}

}  // namespace renzan::cluster::kubernetes
