#include "renzan/cluster/kubernetes/controller/pool_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/random_testing.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Json PoolSpec(const std::string& pool, int most, const Json& more = Json::object()) {
  Json spec = {{"capacity", {{"cpu", "64"}, {"memory", "256Gi"}, {kGpuResource, "8"}}},
               {"maxNodes", most},
               {"boot", "20s"},
               {"idle", "1m"},
               {"scaleRef",
                {{"apiVersion", "example.com/v1"},
                 {"kind", "MachineSet"},
                 {"namespace", "machines"},
                 {"name", pool}}}};
  spec.merge_patch(more);
  return spec;
}

struct Pools : World {
  Pools() { AddPool("gpu", 3); }
  void AddPool(const std::string& pool, int most, const Json& more = Json::object(),
               bool any_goes = false) {
    cluster.AddMachines(pool, 8, 20 * kSecond, any_goes);
    cluster.Apply(NodePools(), pool, PoolSpec(pool, most, more));
  }
  Json StatusOf(const std::string& pool) {
    return At(cluster.Get(NodePools(), "", pool, ""), {"status"});
  }
  std::vector<std::pair<TimeMs, int64_t>> Booting() const {
    std::vector<std::pair<TimeMs, int64_t>> found;
    for (const Node& node : leader->controller.snapshot().nodes)
      if (node.state == NodeState::kBooting) found.emplace_back(node.until, node.capacity.gpu());
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST(KubernetesNodePools, BuyWhatAJobNeedsAndReturnItWhenItIsIdle) {
  Pools world;
  world.cluster.AddJob("ads", "train", JobSpec(4, 4), kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
  EXPECT_EQ(world.PhaseOf("train"), "pending");
  Json status = world.StatusOf("gpu");
  EXPECT_EQ(NumberAt(status, {"booting"}), 2);
  EXPECT_EQ(NumberAt(status, {"wanted"}), 2);
  EXPECT_EQ(TextAt(status["conditions"][1], {"status"}), "True") << status;
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "running");
  EXPECT_EQ(NumberAt(world.StatusOf("gpu"), {"ready"}), 2);
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
  world.Run(3 * kMinute);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 0);
  EXPECT_EQ(NumberAt(world.StatusOf("gpu"), {"nodes"}), 0);
  EXPECT_THAT(world.wrong, IsEmpty());
}

// Both are first reported at the same time.
TEST(KubernetesNodePools, AMachineThatBootsIsNotBoughtAgainWhenAnotherIsReady) {
  Pools world;
  world.cluster.AddJob("ads", "train", JobSpec(2, 8), kMinute);
  world.Run(5 * kSecond);
  ASSERT_EQ(world.cluster.Replicas("gpu"), 2);
  world.cluster.AddNode("early", 8, {{kPoolLabel, "gpu"}});
  const Json ready = world.cluster.Get(Nodes(), "", "early", "").at("status");
  world.cluster.Create(Nodes(), "",
                       {{"metadata", {{"name", "late"}, {"labels", {{kPoolLabel, "gpu"}}}}},
                        {"status", {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}}}});
  world.Run(5 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
  EXPECT_EQ(world.PhaseOf("train"), "pending");
  world.cluster.SetNode("late", [&](Json& node) { node["status"] = ready; });
  world.Run(5 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
  EXPECT_EQ(world.PhaseOf("train"), "running");
}

TEST(KubernetesNodePools, ANewLeaderSeesTheSameMachinesBoot) {
  Pools world;
  world.cluster.AddJob("ads", "train", JobSpec(4, 4), kMinute);
  world.Run(5 * kSecond);
  const auto booting = world.Booting();
  ASSERT_EQ(booting.size(), 2u);
  world.StartController();
  world.Run(kSecond / 2);
  EXPECT_EQ(world.Booting(), booting);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
}

TEST(KubernetesNodePools, ANewLeaderKnowsForHowLongMachinesHaveBeenIdle) {
  Pools world;
  world.cluster.Apply(NodePools(), "gpu", PoolSpec("gpu", 3, {{"idle", "12m"}}));
  world.cluster.AddJob("ads", "train", JobSpec(4, 4), kMinute);
  world.Run(3 * kMinute);
  ASSERT_EQ(world.PhaseOf("train"), "done");
  ASSERT_THAT(At(world.StatusOf("gpu"), {"facts", "idleSinceMs"}), IsEmpty());
  // One of them is used once more.
  world.Run(5 * kMinute);
  EXPECT_THAT(At(world.StatusOf("gpu"), {"facts", "idleSinceMs"}), SizeIs(2));
  world.cluster.AddJob("ads", "short", JobSpec(1, 8), kMinute);
  world.Run(2 * kMinute);
  ASSERT_EQ(world.PhaseOf("short"), "done");
  EXPECT_THAT(At(world.StatusOf("gpu"), {"facts", "idleSinceMs"}), SizeIs(1));
  for (int minute = 0; minute < 5; ++minute) {
    world.StartController();
    world.Run(kMinute);
  }
  EXPECT_EQ(world.cluster.Replicas("gpu"), 1);
}

TEST(KubernetesNodePools, OwnMachinesComeFirstAndTheBudgetHolds) {
  Pools world;
  world.AddPool("spot", 5, {{"pricePerHour", 6}, {"spot", true}});
  world.cluster.Apply(ClusterPolicies(), "default", {{"budgetPerHour", 13}});
  world.cluster.AddNode("own", 8);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    world.cluster.AddJob("ads", name, JobSpec(1, 8), kHour);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 3);
  EXPECT_EQ(world.cluster.Replicas("spot"), 2);
  world.Run(kMinute);
  int running = 0;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    running += world.PhaseOf(name) == "running";
  EXPECT_EQ(running, 6);
  for (const Node& node : world.leader->controller.snapshot().nodes)
    if (node.state == NodeState::kReady) {
      EXPECT_EQ(node.spot, node.name.starts_with("spot"));
    }
}

TEST(KubernetesNodePools, ANodeWithPodsOfOthersIsNotIdle) {
  Pools world;
  world.cluster.AddJob("ads", "train", JobSpec(1, 4), 30 * kSecond);
  world.Run(kMinute);
  const Json container = {{"name", "main"}, {"resources", {{"requests", {{"cpu", "1"}}}}}};
  world.cluster.Create(
      Pods(), "ads",
      {{"metadata", {{"name", "dns"}}},
       {"spec", {{"nodeName", "gpu-0"}, {"containers", Json::array({container})}}}});
  world.Run(5 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.cluster.Replicas("gpu"), 1);
  EXPECT_FALSE(NodeFrom(world.cluster.Get(Nodes(), "", "gpu-0", "")).returning);
  world.cluster.Delete(Pods(), "ads", "dns", "", 0);
  world.Run(5 * kMinute);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 0);
}

TEST(KubernetesNodePools, ANodeThatStaysBecauseAnotherWentTakesWorkAgain) {
  Pools world;
  world.cluster.AddJob("ads", "a", JobSpec(1, 8), kHour);
  world.cluster.AddJob("ads", "b", JobSpec(1, 8), 30 * kSecond);
  world.Run(90 * kSecond);
  const std::string busy =
      TextAt(At(*world.cluster.FindJob("ads", "a"), {"status", "placement"})[0], {"node"});
  ASSERT_EQ(world.cluster.Replicas("gpu"), 2);
  const std::string idle = busy == "gpu-0" ? "gpu-1" : "gpu-0";
  for (int i = 0; i < 1000 && world.cluster.Replicas("gpu") == 2; ++i) {
    world.cluster.Play();
    world.Run(kSecond / 2);
    if (world.cluster.Replicas("gpu") == 1) world.cluster.RemoveNode(busy);
  }
  EXPECT_TRUE(NodeFrom(world.cluster.Get(Nodes(), "", idle, "")).returning);
  world.Run(10 * kSecond);
  EXPECT_FALSE(NodeFrom(world.cluster.Get(Nodes(), "", idle, "")).returning);
  EXPECT_EQ(world.PhaseOf("a"), "running");
  EXPECT_EQ(world.cluster.Replicas("gpu"), 1);
}

TEST(KubernetesNodePools, SayWhatKeepsThemFromBeingScaled) {
  Pools world;
  world.cluster.Apply(NodePools(), "lost", PoolSpec("nowhere", 2));
  world.cluster.Apply(NodePools(), "wrong", PoolSpec("gpu", 2, {{"minNodes", 3}}));
  world.cluster.Apply(NodePools(), "own", Json::object());
  world.Run(2 * kSecond);
  const auto condition = [&](const char* pool, int at) {
    const Json each = world.StatusOf(pool)["conditions"][at];
    EXPECT_EQ(NumberAt(each, {"observedGeneration"}), 1);
    return TextAt(each, {"type"}) + " " + TextAt(each, {"status"}) + " " + TextAt(each, {"reason"});
  };
  EXPECT_EQ(condition("lost", 0), "Accepted True Accepted");
  EXPECT_EQ(condition("lost", 1), "Scalable False Trouble");
  EXPECT_THAT(TextAt(world.StatusOf("lost"), {"message"}), HasSubstr("NotFound"));
  EXPECT_EQ(condition("wrong", 0), "Accepted False Invalid");
  EXPECT_THAT(TextAt(world.StatusOf("wrong"), {"message"}), HasSubstr("minNodes is 3"));
  EXPECT_EQ(condition("own", 1), "Scalable False NoScaleRef");
  EXPECT_EQ(condition("gpu", 1), "Scalable True Scalable");
}

TEST(KubernetesNodePools, SayWhyTheyWereNotScaledAsLongAsThatIsWanted) {
  Pools world;
  world.cluster.refuses_scaling = true;
  world.cluster.AddJob("ads", "train", JobSpec(2, 8), kMinute);
  const auto message = [&] { return TextAt(world.StatusOf("gpu"), {"message"}); };
  world.Run(5 * kSecond);
  for (int turn = 0; turn < 40; ++turn) {
    world.Run(kSecond);
    EXPECT_THAT(message(), HasSubstr("quota of machines")) << "after " << turn << " s";
  }
  // Nobody wants it any more.
  world.cluster.DeleteJob("ads", "train");
  world.Run(5 * kSecond);
  EXPECT_EQ(message(), "");
  world.cluster.AddJob("ads", "again", JobSpec(2, 8), kMinute);
  world.Run(5 * kSecond);
  EXPECT_THAT(message(), HasSubstr("quota of machines"));
  world.cluster.refuses_scaling = false;
  world.Run(5 * kSecond);
  EXPECT_EQ(message(), "");
  EXPECT_EQ(world.cluster.Replicas("gpu"), 2);
}

TEST(KubernetesNodePools, MachinesThatNeverComeAreNotWaitedForForEver) {
  Pools world;
  world.cluster.Apply(NodePools(), "gpu", PoolSpec("gpu", 3, {{"boot", "1s"}}));
  world.cluster.AddMachines("gpu", 8, 10 * kHour);
  world.AddPool("dear", 3, {{"pricePerHour", 5}});
  world.cluster.AddJob("ads", "train", JobSpec(3, 8), kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 3);
  EXPECT_EQ(world.cluster.Replicas("dear"), 0);
  world.Run(12 * kMinute);
  EXPECT_EQ(world.cluster.Replicas("gpu"), 3);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_THAT(TextAt(world.StatusOf("gpu"), {"message"}), HasSubstr("have not become nodes"));
}

// Whatever fails in between, and whoever leads: no job is lost, no machine is bought twice or
// beyond what the pool and the budget allow, and all are returned in the end.
TEST(KubernetesNodePools, RandomTroubleBuysNothingTwice) {
  const auto [first, last] = TestSeeds(29);
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    uint64_t draws = 0;
    const auto draw = [&](uint32_t below) { return Philox::Draw(seed, draws++, 5)[0] % below; };
    const bool any_goes = seed % 3 == 0;
    const auto add_pool = [&](const char* name, int most, const Json& more) {
      world.cluster.AddMachines(name, 8, 20 * kSecond, any_goes);
      world.cluster.Apply(NodePools(), name, PoolSpec(name, most, more));
    };
    world.cluster.Apply(ClusterPolicies(), "default",
                        {{"budgetPerHour", 12}, {"scheduling", {{"overdueAfter", "30s"}}}});
    add_pool("gpu", 2, {{"idle", "20s"}});
    add_pool("spot", 4, {{"pricePerHour", 5}, {"spot", true}, {"idle", "20s"}});
    world.network.no_answer = draw(2) == 0 ? 0 : 0.05;
    world.cluster.ends_may_be_unseen = true;
    std::vector<std::string> jobs;
    std::unique_ptr<Replica> deposed;
    int most_priced = 0;
    const auto step = [&](bool trouble) {
      world.clock.seconds += 0.2 + draw(3000) / 1000.0;
      for (const std::string& each : world.cluster.Play()) world.wrong.push_back(each);
      const auto try_to_work = [&](Replica& replica) {
        try {
          for (const Source source : kAllSources)
            replica.Show(source, trouble ? draw(6) : SIZE_MAX);
          replica.controller.Turn();
          return true;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kTempFail);
          return false;
        }
      };
      if (deposed && !try_to_work(*deposed)) deposed.reset();
      if (!try_to_work(*world.leader)) world.StartController();
      most_priced = std::max(most_priced, world.cluster.Replicas("spot"));
      EXPECT_LE(world.cluster.Replicas("gpu"), 2);
    };
    for (int turn = 0; turn < 400; ++turn) {
      if (draw(20) == 0 && jobs.size() < 12) {
        jobs.push_back(fmt::format("job-{}", jobs.size()));
        const int workers = 1 + static_cast<int>(draw(3)), gpus = 2 << draw(3);
        // Spot nodes are bought only for jobs that save their work, and there are two other nodes.
        const bool saves = draw(4) > 0 || workers * gpus > 16;
        world.cluster.AddJob("ads", jobs.back(), JobSpec(workers, gpus, saves),
                             (10 + draw(100)) * kSecond);
      }
      if (draw(50) == 0) {
        deposed = world.StartController();
        if (seed % 2 == 0) deposed.reset();
      }
      if (draw(20) == 0) deposed.reset();
      step(true);
    }
    world.network.no_answer = 0;
    deposed.reset();
    for (int turn = 0; turn < 4000; ++turn) {
      step(false);
      if (world.leader->controller.live().empty() && world.cluster.Objects(Nodes()).empty() &&
          world.cluster.Replicas("gpu") + world.cluster.Replicas("spot") == 0)
        break;
    }
    for (const std::string& job : jobs) EXPECT_EQ(world.PhaseOf(job), "done") << job;
    // Two replicas that lead at the same time may both spend the last of the budget, one after the
    // other.
    EXPECT_LE(most_priced, 2);
    EXPECT_EQ(world.cluster.Replicas("gpu") + world.cluster.Replicas("spot"), 0);
    EXPECT_THAT(world.cluster.Objects(Nodes()), IsEmpty());
    EXPECT_THAT(world.wrong, IsEmpty());
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
