#include "renzan/cluster/core/labels.h"

#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

TEST(Labels, RequiredAndPreferred) {
  const Node node = {.labels = {{"gpu_model", "a100"}, {"disk", "nvme"}}};
  EXPECT_TRUE(Matches(node, {}));
  EXPECT_TRUE(Matches(node, {.required = {{"disk", "nvme"}}}));
  EXPECT_FALSE(Matches(node, {.required = {{"disk", "nvme"}, {"gpu_model", "v100"}}}));
  EXPECT_FALSE(Matches(node, {.required = {{"rack", "1"}}}));
  EXPECT_EQ(CountPreferred(node, {.preferred = {{"disk", "nvme"}, {"rack", "1"}}}), 1);
}

TEST(Labels, DomainsAreNestedAndNodesWithoutALabelHaveNone) {
  Snapshot snapshot;
  snapshot.topology_levels = {"zone", "rack"};
  snapshot.nodes = {{.labels = {{"zone", "b"}, {"rack", "1"}}},
                    {.labels = {{"zone", "a"}, {"rack", "1"}}},
                    {.labels = {{"zone", "a"}}},
                    {.labels = {{"zone", "a"}, {"rack", "1"}}}};
  EXPECT_EQ(DomainsAt(snapshot, "zone"), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(DomainsAt(snapshot, "rack"), (std::vector<int>{0, 1, -1, 1}));
  EXPECT_EQ(DomainOf(snapshot, snapshot.nodes[1].labels, "rack"), "a/1");
  EXPECT_EQ(DomainOf(snapshot, snapshot.nodes[2].labels, "rack"), "");
  EXPECT_EQ(DomainsAt(snapshot, "host"), (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace renzan::cluster
