// Machines that are bought and returned, and what an administrator applies, in the simulated
// cluster (fake_cluster_testing.h).

#include <fmt/format.h>

#include <algorithm>

#include "renzan/cluster/kubernetes/controller/fake_cluster_testing.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

void FakeCluster::AddMachines(const std::string& pool, int gpus, TimeMs boot_ms, bool any_goes) {
  machines_[pool] = {.gpus = gpus, .boot_ms = boot_ms, .any_goes = any_goes};
  Store(FakeMachines().plural, {"machines", pool},
        {{"metadata", {{"name", pool}, {"namespace", "machines"}}}, {"spec", {{"replicas", 0}}}});
}

int FakeCluster::Replicas(const std::string& pool) const {
  return static_cast<int>(NumberAt(Find(FakeMachines(), "machines", pool), {"spec", "replicas"}));
}

void FakeCluster::RemoveNode(const std::string& name) {
  KillNode(name);
  Erase("nodes", {"", name});
}

void FakeCluster::Apply(const Kind& kind, const std::string& name, Json spec) {
  Json object = Exists(kind, {"", name})
                    ? Find(kind, "", name)
                    : Json{{"metadata",
                            {{"name", name},
                             {"uid", fmt::format("{}-{}", kind.plural, ++uids_)},
                             {"creationTimestamp", TimeText(clock_.UnixMs())},
                             {"generation", 0}}}};
  object["spec"] = std::move(spec);
  object["metadata"]["generation"] = object["metadata"]["generation"].get<int64_t>() + 1;
  Store(kind.plural, {"", name}, std::move(object));
}

// Plays the owners of the pools' machines.
void FakeCluster::PlayMachines(TimeMs now) {
  for (auto& [pool, machines] : machines_) {
    std::vector<std::string> nodes, chosen;
    for (const Json* node : Objects(Nodes())) {
      if (TextAt(*node, {"metadata", "labels", kPoolLabel}) != pool) continue;
      const KubernetesNode facts = NodeFrom(*node);
      nodes.push_back(facts.name);
      if (facts.returning) chosen.push_back(facts.name);
    }
    const int wanted = Replicas(pool), there = static_cast<int>(nodes.size());
    auto& booting = machines.booting;
    const auto boots = static_cast<size_t>(std::max(0, wanted - there));
    if (booting.size() > boots) booting.resize(boots);
    while (booting.size() < boots) booting.push_back(now + machines.boot_ms + Draw(3000));
    std::erase_if(booting, [&](TimeMs until) {
      if (until > now) return false;
      AddNode(fmt::format("{}-{}", pool, machines.made++), machines.gpus, {{kPoolLabel, pool}});
      return true;
    });
    if (there > wanted && Draw(4) == 0) {
      const auto& from = chosen.empty() || (machines.any_goes && Draw(2) == 0) ? nodes : chosen;
      RemoveNode(from[Draw(static_cast<uint32_t>(from.size()))]);
    }
  }
}

}  // namespace renzan::cluster::kubernetes
