#include "renzan/cluster/kubernetes/controller/namespace_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;

struct LimitedWorld : World {
  LimitedWorld() {
    rights_by_namespace = true;
    StartController();
    cluster.AddNode("a", 8);
  }
  // Why a job does not start, to a client that sees the same objects.
  std::string HeldToClients(const std::string& name) {
    const Observed observed = SeenByClients();
    for (const GangJob& job : observed.jobs)
      if (job.name == name) return observed.snapshot.Find(job.status.id)->held;
    return "there is no such job";
  }
  std::string StatusIn(const char* ns, const char* name, const char* key) {
    return TextAt(*cluster.FindJob(ns, name), {"status", key});
  }
};

TEST(KubernetesNamespaceRights, JobsWaitForTheRightToRunThem) {
  LimitedWorld world;
  world.cluster.closed_namespaces = {"web"};
  world.cluster.AddJob("ads", "mine", JobSpec(1, 4), kHour);
  world.cluster.AddJob("web", "theirs", JobSpec(1, 4), kHour);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(kMinute);
    EXPECT_EQ(world.StatusIn("ads", "mine", "phase"), "running");
    EXPECT_EQ(world.StatusIn("web", "theirs", "phase"), "pending");
    EXPECT_THAT(world.StatusIn("web", "theirs", "message"),
                HasSubstr("the controller has no right to create pods in namespace 'web': an "
                          "administrator may bind the ClusterRole renzan-controller-jobs"));
    world.StartController();
  }
  EXPECT_EQ(world.cluster.forbidden, 0) << "it tries what it may not";
  EXPECT_EQ(world.HeldToClients("theirs"), world.StatusIn("web", "theirs", "message"));
  world.cluster.closed_namespaces.clear();
  world.Run(15 * kSecond);
  EXPECT_EQ(world.StatusIn("web", "theirs", "phase"), "running");
  EXPECT_EQ(world.HeldToClients("theirs"), "");
  // What runs goes on without it, but does not start again.
  world.cluster.closed_namespaces = {"web"};
  world.Run(2 * kMinute);
  EXPECT_EQ(world.StatusIn("web", "theirs", "phase"), "running");
  world.cluster.MergePatch(GangJobs(), "web", "theirs",
                           {{"metadata", {{"annotations", {{kRequestPreempt, "now"}}}}}}, "");
  world.Run(2 * kMinute);
  EXPECT_EQ(world.StatusIn("web", "theirs", "phase"), "pending");
  EXPECT_EQ(world.cluster.forbidden, 0);
  EXPECT_EQ(world.wrong, std::vector<std::string>());
}

TEST(KubernetesNamespaceRights, AnOutageChangesNothing) {
  LimitedWorld world;
  world.cluster.AddJob("ads", "large", JobSpec(1, 16), kHour);
  world.Run(10 * kSecond);
  world.network.is_down = true;
  world.Run(5 * kMinute);
  EXPECT_EQ(world.leader->controller.snapshot().jobs.at(0).held, "");
  world.network.is_down = false;
  world.cluster.AddNode("b", 16);
  world.Run(30 * kSecond);
  EXPECT_EQ(world.PhaseOf("large"), "running");
}

// Where the right is bound everywhere, nobody is asked.
TEST(KubernetesNamespaceRights, WithoutTheOptionItTries) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.closed_namespaces = {"ads"};
  world.cluster.AddJob("ads", "job", JobSpec(1, 4), kHour);
  world.Run(10 * kSecond);
  EXPECT_GT(world.cluster.forbidden, 0);
}

TEST(KubernetesNamespaceRights, AskEachNamespaceOnceInAWhile) {
  World world;
  NamespaceRights rights(true);
  const auto requests = MakeSequentialRequests(world.cluster);
  EXPECT_EQ(rights.NextAsk(), kNever);
  EXPECT_THAT(rights.WhyNot("ads"), HasSubstr("has not said yet"));
  world.cluster.closed_namespaces = {"web"};
  EXPECT_TRUE(rights.Refresh({"ads", "web"}, *requests, 1000));
  EXPECT_EQ(rights.WhyNot("ads"), "");
  EXPECT_NE(rights.WhyNot("web"), "");
  world.cluster.closed_namespaces = {"ads"};
  EXPECT_FALSE(rights.Refresh({"ads", "web"}, *requests, rights.NextAsk() - 1));
  EXPECT_TRUE(rights.Refresh({"ads", "web"}, *requests, rights.NextAsk()));
  EXPECT_EQ(rights.WhyNot("web"), "");
  EXPECT_EQ(rights.WhyNot("ads"), "") << "asked later";
  EXPECT_TRUE(rights.Refresh({"ads", "web"}, *requests, 1000 + kMinute));
  EXPECT_NE(rights.WhyNot("ads"), "");
  EXPECT_EQ(NamespaceRights(false).WhyNot("web"), "");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
