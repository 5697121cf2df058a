#include "renzan/cluster/kubernetes/objects/node.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

KubernetesNode WithTaint(const char* key, const char* effect) {
  return NodeFrom({{"metadata", {{"name", "n"}}},
                   {"spec", {{"taints", {{{"key", key}, {"effect", effect}}}}}}});
}

TEST(KubernetesNode, TaintsThatAnnounceItsEnd) {
  // As their authors set them; an option of the AWS node termination handler chooses the effect.
  for (const auto& [key, effect] :
       {std::pair{"aws-node-termination-handler/spot-itn", "NoSchedule"},
        {"aws-node-termination-handler/spot-itn", "NoExecute"},
        {"aws-node-termination-handler/spot-itn", "PreferNoSchedule"},
        {"aws-node-termination-handler/scheduled-maintenance", "NoSchedule"},
        {"aws-node-termination-handler/asg-lifecycle-termination", "NoSchedule"},
        {"aws-node-termination-handler/rebalance-recommendation", "NoSchedule"},
        {"cloud.google.com/impending-node-termination", "NoSchedule"},
        {"karpenter.sh/disruption", "NoSchedule"},  // before version 1
        {"karpenter.sh/disrupted", "NoSchedule"},
        {"ToBeDeletedByClusterAutoscaler", "NoSchedule"}}) {
    const KubernetesNode node = WithTaint(key, effect);
    EXPECT_EQ(node.leaving, key) << effect;
    // Its gangs save their work and leave: no toleration keeps them there.
    EXPECT_TRUE(node.taints.empty()) << key;
    EXPECT_FALSE(node.cordoned) << key;
  }
}

TEST(KubernetesNode, TaintsThatOnlyKeepNewWorkersAway) {
  for (const auto& [key, effect] :
       {std::pair{"node.kubernetes.io/unschedulable", "NoSchedule"},
        {"node.kubernetes.io/out-of-service", "NoExecute"},
        {"node.kubernetes.io/memory-pressure", "NoSchedule"},
        {"node.kubernetes.io/disk-pressure", "NoSchedule"},
        {"node.kubernetes.io/pid-pressure", "NoSchedule"},
        {"node.kubernetes.io/network-unavailable", "NoSchedule"},
        {"node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"},
        {"node.cloudprovider.kubernetes.io/shutdown", "NoSchedule"}}) {
    const KubernetesNode node = WithTaint(key, effect);
    EXPECT_TRUE(node.cordoned) << key;
    EXPECT_EQ(node.leaving, "") << key;
    EXPECT_TRUE(node.taints.empty()) << key;
  }
}

TEST(KubernetesNode, TaintsThatSayNothing) {
  for (const auto& [key, effect] :
       {// The autoscaler thinks about it.
        std::pair{"DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"},
        {"example.com/busy", "PreferNoSchedule"},
        // The condition Ready covers it.
        {"node.kubernetes.io/not-ready", "NoSchedule"},
        {"node.kubernetes.io/unreachable", "NoExecute"}}) {
    const KubernetesNode node = WithTaint(key, effect);
    EXPECT_FALSE(node.cordoned) << key;
    EXPECT_EQ(node.leaving, "") << key;
    EXPECT_TRUE(node.taints.empty()) << key;
  }
}

TEST(KubernetesNode, OtherTaintsAreForThosePodsThatTolerateThem) {
  const KubernetesNode node = WithTaint("nvidia.com/gpu", "NoSchedule");
  EXPECT_EQ(node.taints, (std::vector<Taint>{{"nvidia.com/gpu", "", "NoSchedule"}}));
  EXPECT_EQ(node.leaving, "");
  EXPECT_FALSE(node.cordoned);
}

TEST(KubernetesNode, ACordonAndADeletion) {
  EXPECT_TRUE(NodeFrom({{"spec", {{"unschedulable", true}}}}).cordoned);
  EXPECT_EQ(NodeFrom({{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}}).leaving,
            "deletion");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
