// The effects of ClusterPolicies, taints and new leaders on jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string MessageOf(const World& world, const std::string& name) {
  return TextAt(*world.cluster.FindJob("ads", name), {"status", "message"});
}

Json WithPriority(Json spec, int priority) {
  spec["priority"] = priority;
  return spec;
}

TEST(KubernetesPolicy, LimitsHoldJobsUntilTheyAreRelaxed) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 5}}}});
  world.cluster.AddJob("ads", "low", WithPriority(JobSpec(1, 1), 5), kMinute);
  world.cluster.AddJob("ads", "high", WithPriority(JobSpec(1, 1), 6), kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("low"), "running");
  EXPECT_EQ(world.PhaseOf("high"), "pending");
  EXPECT_THAT(
      MessageOf(world, "high"),
      HasSubstr("priority 6: in queue 'default', jobs of namespace 'ads' may have at most 5 "
                "(limits.maxPriority of the ClusterPolicy 'default'"));
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 6}}}});
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("high"), "running");
}

TEST(KubernetesPolicy, WithoutAnyTheDefaultsBind) {
  World world;
  world.cluster.AddNode("a", 8);
  Json all = JobSpec(1, 1);
  all["grandChallenge"] = true;
  world.cluster.AddJob("ads", "all", all, kMinute);
  world.cluster.AddJob("ads", "first", WithPriority(JobSpec(1, 1), 1), kMinute);
  world.cluster.AddJob("ads", "last", WithPriority(JobSpec(1, 1), -1), kMinute);
  world.Run(5 * kSecond);
  EXPECT_THAT(MessageOf(world, "all"), HasSubstr("grandChallenge"));
  EXPECT_THAT(MessageOf(world, "first"), HasSubstr("may have at most 0"));
  EXPECT_EQ(world.PhaseOf("last"), "running");
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"exemptNamespaces", {"ads"}}}}});
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("all"), "running");
  EXPECT_EQ(world.PhaseOf("first"), "running");
}

TEST(KubernetesPolicy, OfTooManyPendingJobsTheLaterAreHeld) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPendingJobs", 1}}}});
  world.cluster.AddJob("ads", "first", JobSpec(1, 8, false), kMinute);
  world.Run(5 * kSecond);
  world.cluster.AddJob("ads", "second", JobSpec(1, 8, false), kMinute);
  world.Run(5 * kSecond);
  world.cluster.AddJob("ads", "third", JobSpec(1, 8, false), kMinute);
  world.cluster.AddJob("other", "free", JobSpec(1, 8, false), kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("first"), "running");
  EXPECT_THAT(MessageOf(world, "second"), HasSubstr("0 of 8 GPUs free"));
  EXPECT_THAT(MessageOf(world, "third"), HasSubstr("has 1 pending job before it"));
  EXPECT_EQ(TextAt(*world.cluster.FindJob("other", "free"), {"status", "reason"}), "Resources");
  world.Run(6 * kMinute);
  EXPECT_EQ(world.PhaseOf("third"), "done");
}

TEST(KubernetesPolicy, CapsBindAndOverridesEndByThemselves) {
  World world;
  world.cluster.AddNode("a", 8);
  Json spec = {{"userCaps", {{{"namespace", "ads"}, {"maxGpus", 4}}}}};
  world.cluster.Apply(ClusterPolicies(), "default", spec);
  world.cluster.AddJob("ads", "one", JobSpec(1, 4), kHour);
  world.cluster.AddJob("ads", "two", JobSpec(1, 4), kHour);
  world.Run(5 * kSecond);
  const auto running = [&] {
    return (world.PhaseOf("one") == "running") + (world.PhaseOf("two") == "running");
  };
  EXPECT_EQ(running(), 1);
  const TimeMs until = (world.clock.UnixMs() / kSecond + 60) * kSecond;
  spec["overrides"] = {{{"namespace", "ads"}, {"maxGpus", 8}, {"until", TimeText(until)}}};
  world.cluster.Apply(ClusterPolicies(), "default", spec);
  world.Run(10 * kSecond);
  EXPECT_EQ(running(), 2);
  world.Run(kMinute + 10 * kSecond);
  EXPECT_EQ(running(), 1);
}

TEST(KubernetesPolicy, AnInvalidOneKeepsTheLastThatWasRightForTheNextLeaderToo) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 3}}}});
  world.cluster.Apply(ClusterPolicies(), "other", Json::object());
  world.Run(2 * kSecond);
  const auto condition = [&](const char* name) {
    const Json object = world.cluster.Get(ClusterPolicies(), "", name, "");
    const Json& each = At(object, {"status", "conditions"})[0];
    EXPECT_EQ(NumberAt(each, {"observedGeneration"}), NumberAt(object, {"metadata", "generation"}));
    return TextAt(each, {"status"}) + " " + TextAt(each, {"message"});
  };
  EXPECT_EQ(condition("default"), "True Accepted");
  EXPECT_THAT(condition("other"), HasSubstr("False only the ClusterPolicy named 'default' counts"));
  const Json rack = {{"level", "rack"}, {"label", "a"}};
  world.cluster.Apply(ClusterPolicies(), "default", {{"topology", {rack, rack}}});
  world.Run(2 * kSecond);
  EXPECT_THAT(condition("default"), HasSubstr("False spec.topology has the level rack twice"));
  world.StartController();
  world.cluster.AddJob("ads", "high", WithPriority(JobSpec(1, 1), 4), kMinute);
  world.Run(5 * kSecond);
  EXPECT_THAT(MessageOf(world, "high"), HasSubstr("at most 3"));
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 4}}}});
  world.Run(5 * kSecond);
  EXPECT_EQ(condition("default"), "True Accepted");
  EXPECT_EQ(world.PhaseOf("high"), "running");
}

TEST(KubernetesPolicy, TopologyIsTheClustersOwn) {
  World world;
  world.cluster.AddNode("a", 8, {{"example.com/row", "1"}});
  world.cluster.AddNode("b", 8, {{"example.com/row", "2"}});
  world.cluster.AddNode("c", 8, {{"example.com/row", "2"}});
  Json spec = JobSpec(2, 8);
  spec["topology"] = {{"level", "row"}, {"required", true}};
  world.cluster.AddJob("ads", "row", spec, kMinute);
  world.Run(5 * kSecond);
  EXPECT_THAT(MessageOf(world, "row"), HasSubstr("no topology level 'row'"));
  world.cluster.Apply(ClusterPolicies(), "default",
                      {{"topology", {{{"level", "row"}, {"label", "example.com/row"}}}}});
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("row"), "running");
  EXPECT_THAT(MessageOf(world, "row"), HasSubstr("b (1 worker), c (1 worker)"));
}

TEST(KubernetesPolicy, EndedJobsAreDeletedWhenTheyHaveBeenKeptLongEnough) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "short", JobSpec(1, 1), 30 * kSecond);
  world.cluster.AddJob("ads", "long", JobSpec(1, 1), kHour);
  world.Run(kMinute);
  ASSERT_EQ(world.PhaseOf("short"), "done");
  world.Run(10 * kMinute);
  ASSERT_EQ(world.PhaseOf("short"), "done");
  world.cluster.Apply(ClusterPolicies(), "default", {{"retention", {{"keepEndedFor", "20m"}}}});
  world.Run(5 * kMinute);
  EXPECT_EQ(world.PhaseOf("short"), "done");
  world.Run(6 * kMinute);
  EXPECT_EQ(world.PhaseOf("short"), "gone");
  EXPECT_EQ(world.PhaseOf("long"), "running");
}

// --- Nodes.

TEST(KubernetesPolicy, TaintsThatATemplateDoesNotTolerateKeepItsWorkersAway) {
  World world;
  const auto taint = [&](const char* node, const char* key) {
    world.cluster.SetNode(node, [&](Json& object) {
      object["spec"]["taints"] = Json::array({{{"key", key}, {"effect", "NoExecute"}}});
    });
  };
  world.cluster.AddNode("a", 8);
  taint("a", "team");
  world.cluster.AddJob("ads", "plain", JobSpec(1, 4), kHour);
  Json spec = JobSpec(1, 4);
  spec["template"]["spec"]["tolerations"] =
      Json::array({{{"key", "team"}, {"operator", "Exists"}}});
  world.cluster.AddJob("ads", "tolerates", spec, kHour);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("plain"), "pending");
  EXPECT_THAT(MessageOf(world, "plain"), HasSubstr("tolerations and node affinity"));
  EXPECT_EQ(world.PhaseOf("tolerates"), "running");
  taint("a", "renzan.dev/dedicated");
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("plain"), "running");
  const Json pod = world.cluster.Get(Pods(), "ads", "plain-0-0", "");
  EXPECT_EQ(TextAt(pod["spec"]["tolerations"][0], {"key"}), "renzan.dev/dedicated");
}

TEST(KubernetesPolicy, WhatOnlyJobsToleratedThatAreNoMoreIsForgotten) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.cluster.SetNode("b", [&](Json& object) {
    object["spec"]["taints"] = Json::array({{{"key", "team"}, {"effect", "NoExecute"}}});
  });
  const auto tolerating = [](const std::string& key, int gpus) {
    Json spec = JobSpec(1, gpus);
    spec["template"]["spec"]["tolerations"] = Json::array({{{"key", key}, {"operator", "Exists"}}});
    return spec;
  };
  world.cluster.AddJob("ads", "waits", tolerating("team", 9), kHour);
  for (int round = 0; round < 15; ++round) {
    for (int job = 0; job < 8; ++job) {
      const std::string name = fmt::format("job-{}-{}", round, job);
      world.cluster.AddJob("ads", name, tolerating(name, 1), kSecond);
    }
    world.Run(20 * kSecond);
  }
  const Snapshot& snapshot = world.leader->controller.snapshot();
  EXPECT_LT(snapshot.nodes[0].labels.size(), 80);
  world.cluster.AddJob("ads", "plain", JobSpec(1, 8), kHour);
  world.cluster.AddJob("ads", "no-room", JobSpec(1, 8), kHour);
  world.Run(kMinute);
  world.cluster.EditJob("ads", "waits", [](Json& spec) {
    spec["template"]["spec"]["containers"] = JobSpec(1, 8)["template"]["spec"]["containers"];
  });
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("no-room"), "pending");
  EXPECT_THAT(MessageOf(world, "plain"), HasSubstr("on a (1 worker)"));
  EXPECT_THAT(MessageOf(world, "waits"), HasSubstr("on b (1 worker)"));
}

TEST(KubernetesPolicy, RequiredNodeAffinityIsKeptOrTheJobIsHeld) {
  World world;
  world.cluster.AddNode("a", 8, {{"gpu", "v100"}});
  world.cluster.AddNode("b", 8, {{"gpu", "a100"}});
  const auto with = [](const char* operation) {
    Json spec = JobSpec(1, 2);
    const Json wants = {{"key", "gpu"}, {"operator", operation}, {"values", {"a100", "h100"}}};
    spec["template"]["spec"]["affinity"]["nodeAffinity"]
        ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
            Json::array({{{"matchExpressions", Json::array({wants})}}});
    return spec;
  };
  world.cluster.AddJob("ads", "in", with("In"), kHour);
  world.cluster.AddJob("ads", "not-in", with("NotIn"), kHour);
  world.cluster.AddJob("ads", "unknown", with("Like"), kHour);
  world.Run(5 * kSecond);
  EXPECT_THAT(MessageOf(world, "in"), HasSubstr("on b (1 worker)"));
  EXPECT_THAT(MessageOf(world, "not-in"), HasSubstr("on a (1 worker)"));
  EXPECT_EQ(world.PhaseOf("unknown"), "pending");
  EXPECT_THAT(MessageOf(world, "unknown"), HasSubstr("operator 'Like'"));
}

// As far as the announcement says when it was made.
TEST(KubernetesPolicy, ANoticeGoesOnWithANewLeader) {
  World world;
  for (const char* name : {"added", "autoscaler", "deleted", "unknown"})
    world.cluster.AddNode(name, 8);
  const auto taint = [&](const char* node, Json what) {
    what["effect"] = "NoSchedule";
    world.cluster.SetNode(node, [&](Json& object) { object["spec"]["taints"] = {what}; });
  };
  const TimeMs announced = world.clock.UnixMs() / kSecond * kSecond;
  taint("added", {{"key", "karpenter.sh/disrupted"}, {"timeAdded", TimeText(announced)}});
  taint("autoscaler", {{"key", "ToBeDeletedByClusterAutoscaler"},
                       {"value", std::to_string(announced / kSecond)}});
  world.cluster.SetNode("deleted", [&](Json& object) {
    object["metadata"]["deletionTimestamp"] = TimeText(announced);
  });
  taint("unknown", {{"key", "ToBeDeletedByClusterAutoscaler"}, {"value", "soon"}});
  const auto until = [&](const std::string& name) {
    for (const Node& node : world.leader->controller.snapshot().nodes)
      if (node.name == name) return node.until;
    return kNever;
  };
  world.Run(10 * kSecond);
  const TimeMs unknown = until("unknown");
  world.Run(kMinute);
  for (const bool is_new : {false, true}) {
    if (is_new) world.StartController();
    world.Run(10 * kSecond);
    for (const char* name : {"added", "autoscaler", "deleted"})
      EXPECT_EQ(until(name), announced + 2 * kMinute) << name;
    EXPECT_EQ(until("unknown") == unknown, !is_new);
  }
}

TEST(KubernetesPolicy, ADrainMovesWhatSavesItsWorkAndLeavesTheRest) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "saves", JobSpec(1, 2), kHour);
  world.cluster.AddJob("ads", "does-not", JobSpec(1, 2, false), kHour);
  world.Run(10 * kSecond);
  world.cluster.AddNode("b", 8);
  world.cluster.SetNode("a", [](Json& node) {
    node["spec"]["taints"] = Json::array({{{"key", kDrainTaint}, {"effect", "NoSchedule"}}});
  });
  world.Run(30 * kSecond);
  EXPECT_THAT(MessageOf(world, "saves"), HasSubstr("attempt 1 on b"));
  EXPECT_THAT(MessageOf(world, "does-not"), HasSubstr("attempt 0 on a"));
}

// --- What a new leader knows.

TEST(KubernetesPolicy, ReservationsSurviveALeader) {
  World world;
  world.cluster.Apply(ClusterPolicies(), "default", {{"scheduling", {{"overdueAfter", "1s"}}}});
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  // So large that a and b are a small share of the cluster.
  world.cluster.AddNode("full", 256);
  world.cluster.AddJob("ads", "fills", JobSpec(1, 256, false), kHour);
  for (const char* name : {"one", "two", "three", "four"})
    world.cluster.AddJob("ads", name, JobSpec(1, 4, false), kHour);
  world.Run(5 * kSecond);
  world.cluster.AddJob("ads", "large", JobSpec(2, 8, false), kMinute);
  world.Run(kMinute);
  const auto reserved = [&] {
    std::vector<std::string> names;
    const Snapshot& snapshot = world.leader->controller.snapshot();
    for (const Reservation& each : snapshot.reservations)
      for (const Placed& placed : each.placement)
        names.push_back(fmt::format("{} on {}", each.job, snapshot.nodes[placed.node].name));
    return names;
  };
  const auto before = reserved();
  EXPECT_THAT(before, ::testing::ElementsAre("6 on a", "6 on b"));
  // Who forgot it would reserve this node, on which less has to end.
  world.cluster.AddNode("c", 8);
  world.cluster.AddJob("ads", "small", JobSpec(1, 1, false), kHour);
  world.Run(kMinute);
  EXPECT_EQ(reserved(), before);
  world.StartController();
  world.leader->Work();
  const Json& job = *world.cluster.FindJob("ads", "large");
  EXPECT_EQ(At(job, {"status", "facts", "reservation"}).size(), 2u);
  EXPECT_EQ(reserved(), before);
  world.Run(2 * kHour);
  EXPECT_EQ(world.PhaseOf("large"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesPolicy, RunTimesAreLearnedAndAPredictionStays) {
  World world;
  world.cluster.AddNode("a", 8);
  for (int job = 0; job < 12; ++job)
    world.cluster.AddJob("ads", fmt::format("train-{}", job), JobSpec(1, 1), 5 * kMinute);
  world.Run(15 * kMinute);
  const auto predicted = [&](const char* name) {
    for (const auto& [id, live] : world.leader->controller.live())
      if (live.object.name == name) return world.leader->controller.snapshot().Find(id)->run_time;
    return RunTimeQuantiles{};
  };
  world.cluster.AddJob("ads", "train-100", JobSpec(1, 1), 5 * kMinute);
  world.Run(5 * kSecond);
  const RunTimeQuantiles known = predicted("train-100");
  EXPECT_GT(known[2], 2 * kMinute);
  EXPECT_LT(known[2], 10 * kMinute);
  world.StartController();
  world.cluster.AddJob("ads", "train-101", JobSpec(1, 1), 5 * kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(predicted("train-100"), known);
  // The new leader has learned from the jobs that still exist.
  EXPECT_EQ(predicted("train-101"), known);
}

TEST(KubernetesPolicy, OnSpotNodesJobsAreAskedForCheckpointsAtIntervals) {
  World world;
  world.cluster.Apply(NodePools(), "own", {{"spot", true}});
  world.cluster.Apply(ClusterPolicies(), "default",
                      {{"scheduling", {{"maxCheckpointInterval", "2m"}}}});
  world.cluster.AddNode("a", 8);
  Json spec = JobSpec(1, 1);
  spec["checkpoint"]["onRequest"] = true;
  spec["checkpoint"]["maxInterval"] = "1h";
  world.cluster.AddJob("ads", "train", spec, kHour);
  const auto asked = [&] {
    const Json pod = world.cluster.Get(Pods(), "ads", "train-0-0", "");
    return TextAt(pod, {"metadata", "annotations", kCheckpointRequestAnnotation});
  };
  std::set<std::string> times;
  for (int second = 0; second < 610; ++second) {
    world.Run(kSecond, kSecond);
    if (second == 200) world.StartController();
    times.insert(asked());
  }
  // Not at first, then every two minutes, whoever leads.
  EXPECT_EQ(times.size(), 6u);
}

TEST(KubernetesPolicy, WhatSavingTakesIsMeasuredAtAStop) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 1), kHour);
  world.Run(20 * kSecond);
  world.cluster.MergePatch(GangJobs(), "ads", "train",
                           {{"metadata", {{"annotations", {{kRequestPreempt, "now"}}}}}}, "");
  world.Run(20 * kSecond);
  const Json& cost =
      At(*world.cluster.FindJob("ads", "train"), {"status", "facts", "checkpointCostMs"});
  ASSERT_TRUE(cost.is_number()) << *world.cluster.FindJob("ads", "train");
  world.StartController();
  world.Run(kSecond);
  EXPECT_EQ(world.leader->controller.snapshot().jobs[0].checkpoint_cost_ms, cost.get<TimeMs>());
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
