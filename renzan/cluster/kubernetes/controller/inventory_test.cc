#include "renzan/cluster/kubernetes/controller/inventory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {
namespace {

TEST(Inventory, AGangThatIsMadeSmallerOnANodeHoldsItsRoomOnce) {
  Snapshot snapshot;
  Inventory inventory(snapshot);
  inventory.Put({.name = "n0",
                 .labels = {{kPoolLabel, "p"}},
                 .allocatable = AmountsOf({{kGpuResource, "8"}}),
                 .ready = true},
                0);
  const int request = snapshot.InternRequest({.per_worker = {{0, 0, 3}}});
  snapshot.jobs = {{.id = 1,
                    .request = request,
                    .state = JobState::kResizing,
                    .placement = {{0, 2}},
                    .target = {{0, 1}}}};
  inventory.Refresh({"n0"}, PodBook(), [](const Pod&) { return true; });
  // 6 + 3 would leave room once it is smaller, on a node that has only 8.
  EXPECT_EQ(snapshot.nodes[0].capacity.gpu(), 8);
}

NodeFilter Tolerates(const std::string& key) {
  const nlohmann::json toleration = {{"key", key}, {"operator", "Exists"}};
  return NodeFilter(nlohmann::json{{"tolerations", {toleration}}});
}

int FilterLabelsOf(const Node& node) {
  return static_cast<int>(
      std::count_if(node.labels.begin(), node.labels.end(),
                    [](const auto& each) { return each.first.starts_with("renzan.dev/admits-"); }));
}

TEST(Inventory, FiltersThatNobodyUsesAreDroppedWhenThereAreMany) {
  Snapshot snapshot;
  Inventory inventory(snapshot);
  const auto put = [&](const char* name, const char* taint) {
    inventory.Put({.name = name,
                   .labels = {{kPoolLabel, "p"}},
                   .ready = true,
                   .taints = {{.key = taint, .value = "", .effect = "NoSchedule"}}},
                  0);
  };
  put("n0", "mine");
  put("n1", "other");
  inventory.Put({.name = "all", .labels = {{kPoolLabel, "p"}}, .ready = true}, 0);
  const auto mine = inventory.LabelFor(Tolerates("mine"));
  ASSERT_TRUE(mine);
  const auto is_used = [&](const NodeFilter& filter, const std::string& label) {
    EXPECT_EQ(filter == Tolerates("mine"), label == mine->first);
    return label == mine->first;
  };
  for (int i = 0; i < 1000; ++i) {
    inventory.LabelFor(Tolerates("other"));
    inventory.LabelFor(Tolerates("key-" + std::to_string(i)));
    inventory.DropFilters(is_used);
    ASSERT_EQ(inventory.LabelFor(Tolerates("mine")), mine);
    ASSERT_TRUE(snapshot.nodes[0].labels.contains(mine->first));
    ASSERT_FALSE(snapshot.nodes[1].labels.contains(mine->first));
    ASSERT_LT(FilterLabelsOf(snapshot.nodes[2]), 100);
  }
  // A filter that comes back finds its nodes again, whatever its label has stood for meanwhile.
  const auto other = inventory.LabelFor(Tolerates("other"));
  ASSERT_TRUE(other);
  EXPECT_FALSE(snapshot.nodes[0].labels.contains(other->first));
  EXPECT_TRUE(snapshot.nodes[1].labels.contains(other->first));
  EXPECT_EQ(FilterLabelsOf(snapshot.nodes[0]), 1);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
