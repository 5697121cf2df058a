#include "renzan/cluster/kubernetes/controller/kept_status.h"

#include <gtest/gtest.h>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/kubernetes/controller/fake_cluster_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

// A cluster whose definition of the kind is older than the controller.
class OlderCluster : public FakeCluster {
 public:
  using FakeCluster::FakeCluster;
  Json Replace(const Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource) override {
    ++writes;
    Json known = object;
    known["status"].erase("facts");
    return FakeCluster::Replace(kind, ns, known, subresource);
  }
  int writes = 0;
};

TEST(KeptStatus, IsSentOnceToAServerThatKeepsOnlyPartOfIt) {
  const ManualClock clock;
  OlderCluster cluster(1, clock);
  const auto requests = MakeSequentialRequests(cluster);
  cluster.Apply(NodePools(), "own", {{"maxNodes", 1}});
  const auto now = [&] {
    return std::make_shared<const Json>(cluster.Get(NodePools(), "", "own", ""));
  };
  KeptStatus kept;
  EXPECT_TRUE(kept.Put(now()));
  for (int64_t nodes = 1; nodes <= 2; ++nodes) {
    const Json wanted = {{"nodes", nodes}, {"facts", {{"idle", 7}}}};
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_TRUE(kept.Set(NodePools(), wanted, *requests));
      EXPECT_EQ(cluster.writes, nodes);
      if (turn > 0) continue;
      EXPECT_FALSE(kept.Put(now()));  // it is not news
    }
  }
  // Somebody else has written it.
  Json other = *now();
  other["status"]["nodes"] = 9;
  cluster.FakeCluster::Replace(NodePools(), "", other, "status");
  EXPECT_TRUE(kept.Put(now()));
  EXPECT_TRUE(kept.Set(NodePools(), {{"nodes", 2}, {"facts", {{"idle", 7}}}}, *requests));
  EXPECT_EQ(cluster.writes, 3);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
