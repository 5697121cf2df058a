#include "renzan/cluster/kubernetes/controller/use_book.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "renzan/cluster/kubernetes/controller/observe.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/json_fields.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {
namespace {

struct FairWorld : World {
  FairWorld() {
    cluster.AddNode("a", 8);
    cluster.Apply(Queues(), "fair", {{"fairShare", {{"halfLife", "1h"}}}});
  }
  void Submit(const char* ns, const char* name, int gpus, TimeMs runs) {
    Json spec = JobSpec(1, gpus);
    spec["queue"] = "fair";
    cluster.AddJob(ns, name, spec, runs);
  }
  std::string PhaseIn(const char* ns, const char* name) {
    return TextAt(*cluster.FindJob(ns, name), {"status", "phase"});
  }
  Json QueueStatus() { return At(cluster.Get(Queues(), "", "fair", ""), {"status"}); }
  // What a client sees.
  Snapshot SeenByClients() {
    const auto list = [&](const Kind& kind) {
      Json items = Json::array();
      for (const Json* object : cluster.Objects(kind)) items.push_back(*object);
      return items;
    };
    const Json nodes = list(Nodes()), pools = list(NodePools()), queues = list(Queues()),
               pods = list(Pods());
    std::vector<GangJob> jobs;
    for (const Json& job : list(GangJobs()))
      jobs.push_back(GangJobFrom(std::make_shared<const Json>(job)));
    return Observe({.nodes = nodes,
                    .pools = pools,
                    .queues = queues,
                    .pods = pods,
                    .jobs = std::move(jobs)},
                   {}, clock.UnixMs())
        .snapshot;
  }
  static double UsedIn(const Snapshot& snapshot, const std::string& ns) {
    for (const UsedLately& used : snapshot.queues.at(0).fair_share->used)
      if (snapshot.users[used.user].name == ns) return used.seconds;
    return 0;
  }
  double Used(const std::string& ns) { return UsedIn(leader->controller.snapshot(), ns); }
};

TEST(KubernetesFairShare, NamespacesThatHaveUsedLessGoFirst) {
  FairWorld world;
  for (const char* name : {"one", "two", "three", "four"}) world.Submit("ads", name, 8, kMinute);
  world.Run(50 * kSecond);
  world.Submit("web", "later", 8, kMinute);
  world.Run(60 * kSecond);
  EXPECT_EQ(world.PhaseIn("ads", "two"), "pending");
  EXPECT_EQ(world.PhaseIn("web", "later"), "running");
}

TEST(KubernetesFairShare, TheNextLeaderAndClientsGoOnFromTheStatus) {
  FairWorld world;
  world.Submit("ads", "short", 4, 5 * kMinute);
  world.Submit("web", "long", 2, 24 * kHour);
  world.Run(10 * kMinute);
  EXPECT_NEAR(world.Used("ads"), 4 * 5 * 60, 100);
  EXPECT_NEAR(world.Used("web"), 2 * 10 * 60, 100);
  for (int leader = 0; leader < 2; ++leader) {
    const double before = world.Used("ads"), webs = world.Used("web");
    world.StartController();
    world.Run(5 * kSecond);
    EXPECT_NEAR(world.Used("web"), webs + 2 * 5, 5);
    world.Submit("ads", leader == 0 ? "next" : "last", 1, kHour);  // else it is nobody's user
    world.Run(5 * kSecond);
    EXPECT_NEAR(world.Used("ads"), before, 30);
    EXPECT_NEAR(FairWorld::UsedIn(world.SeenByClients(), "ads"), before, 30);
    EXPECT_NEAR(FairWorld::UsedIn(world.SeenByClients(), "web"), webs + 2 * 10, 5);
  }
  // A job that runs while nobody leads is counted by the next leader.
  const double webs = world.Used("web");
  world.leader.reset();
  world.clock.seconds += 600;
  world.StartController();
  world.Run(2 * kSecond);
  EXPECT_NEAR(world.Used("web"), webs * 0.89 + 2 * 600 * 0.944, 30) << "both have decayed";
}

TEST(KubernetesFairShare, StatusesAreWrittenOnceAMinuteAtMost) {
  FairWorld world;
  world.Submit("web", "long", 2, 24 * kHour);
  world.Run(20 * kSecond);
  std::set<std::string> versions;
  for (int second = 0; second < 300; ++second) {
    world.Run(kSecond);
    versions.insert(
        TextAt(world.cluster.Get(Queues(), "", "fair", ""), {"metadata", "resourceVersion"}));
  }
  EXPECT_GE(versions.size(), 4u);
  EXPECT_LE(versions.size(), 7u);
  world.cluster.Apply(Queues(), "fair", Json::object());
  world.Run(10 * kSecond);
  EXPECT_TRUE(At(world.QueueStatus(), {"usedLately"}).is_null());
  EXPECT_EQ(world.leader->controller.snapshot().queues.at(0).fair_share, std::nullopt);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
