#include "renzan/cluster/kubernetes/controller/queue_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/kubernetes/controller/queue_world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KubernetesQueues, SayWhatTheirJobsUse) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "ads", Gpus(4));
  world.cluster.Apply(Queues(), "search", Gpus("4", "6"));
  world.AddJob("one", "ads", 6);
  world.AddJob("two", "ads", 8);
  world.Run(20 * kSecond);
  const Json ads = world.StatusOf("ads");
  EXPECT_EQ(NumberAt(ads, {"running"}), 1);
  EXPECT_EQ(NumberAt(ads, {"pending"}), 1);
  EXPECT_EQ(TextAt(ads, {"guaranteed", kGpuResource}), "4");
  EXPECT_EQ(TextAt(ads, {"used", kGpuResource}), "6");
  EXPECT_EQ(TextAt(ads, {"borrowed", kGpuResource}), "2");
  EXPECT_EQ(TextAt(world.StatusOf("search"), {"used", kGpuResource}), "0");
  EXPECT_THAT(world.ConditionOf("ads", "Accepted"), HasSubstr("True Accepted"));
  EXPECT_THAT(world.ConditionOf("ads", "Guaranteed"), HasSubstr("True Guaranteed"));
}

TEST(KubernetesQueues, AnInvalidOneKeepsTheLastThatWasRightForTheNextLeaderToo) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "ads", Gpus(2, 4));
  world.Run(2 * kSecond);
  world.cluster.Apply(Queues(), "ads", Gpus(16, 8));
  world.Run(2 * kSecond);
  EXPECT_EQ(
      world.ConditionOf("ads", "Accepted"),
      "False Invalid: spec.guaranteed has 16 nvidia.com/gpu, and spec.limit only 8: raise the "
      "limit, or lower the guarantee");
  for (int leader = 0; leader < 2; ++leader) {
    const Queue& queue = world.leader->controller.snapshot().queues.at(0);
    EXPECT_EQ(queue.guaranteed.gpu(), 2);
    EXPECT_EQ(queue.limit.gpu(), 4);
    world.StartController();
    world.Run(2 * kSecond);
  }
  world.cluster.Apply(Queues(), "ads", Gpus(8, 8));
  world.Run(2 * kSecond);
  EXPECT_EQ(world.ConditionOf("ads", "Accepted"), "True Accepted: Accepted");
  EXPECT_EQ(TextAt(world.StatusOf("ads"), {"message"}), "");
  EXPECT_EQ(world.leader->controller.snapshot().queues.at(0).guaranteed.gpu(), 8);
}

TEST(KubernetesQueues, OneThatWasNeverRightIsGuaranteedNothing) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "ads", Gpus(16, 6));
  world.cluster.Apply(Queues(), "disks", {{"guaranteed", {{"ephemeral-storage", "1Gi"}}}});
  world.cluster.Apply(Queues(), "huge", Gpus("9e18"));
  world.AddJob("fits", "ads", 6);
  world.AddJob("waits", "ads", 1);
  world.Run(10 * kSecond);
  EXPECT_THAT(world.ConditionOf("ads", "Accepted"), HasSubstr("False Invalid"));
  EXPECT_THAT(world.ConditionOf("disks", "Accepted"),
              HasSubstr("spec.guaranteed has ephemeral-storage, which is not counted"));
  EXPECT_THAT(world.ConditionOf("huge", "Accepted"), HasSubstr("more than can be counted"));
  EXPECT_EQ(world.PhaseOf("fits"), "running");
  EXPECT_THAT(world.MessageOf("waits"), HasSubstr("limit"));
  EXPECT_EQ(world.leader->controller.snapshot().queues.at(0).guaranteed, Resources{});
}

TEST(KubernetesQueues, SayWhenMoreIsGuaranteedThanThereIs) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "ads", Gpus(6));
  world.cluster.Apply(Queues(), "search", Gpus(6));
  world.cluster.Apply(Queues(), "none", Json::object());
  world.cluster.Apply(Queues(), "tpu", {{"guaranteed", {{"google.com/tpu", 1}}}});
  world.Run(2 * kSecond);
  for (const char* queue : {"ads", "search"})
    EXPECT_EQ(
        world.ConditionOf(queue, "Guaranteed"),
        "False Overcommitted: all queues together are guaranteed 12 nvidia.com/gpu, but there "
        "are only 8 nvidia.com/gpu: lower guarantees, or add nodes");
  EXPECT_THAT(world.ConditionOf("none", "Guaranteed"), HasSubstr("True"));
  EXPECT_EQ(world.ConditionOf("tpu", "Guaranteed"),
            "False NotOffered: no node and no pool offers any google.com/tpu");
  EXPECT_THAT(world.ConditionOf("ads", "Accepted"), HasSubstr("True"));
  // Nodes that may be bought count.
  world.cluster.AddMachines("gpu", 8, kMinute);
  world.cluster.Apply(NodePools(), "gpu",
                      {{"capacity", {{"cpu", "64"}, {"memory", "256Gi"}, {kGpuResource, "2"}}},
                       {"maxNodes", 1},
                       {"scaleRef",
                        {{"apiVersion", "example.com/v1"},
                         {"kind", "MachineSet"},
                         {"namespace", "machines"},
                         {"name", "gpu"}}}});
  world.Run(10 * kSecond);
  EXPECT_THAT(world.ConditionOf("ads", "Guaranteed"),
              HasSubstr("only 8 nvidia.com/gpu and, that pools may buy, 2 nvidia.com/gpu"));
  world.cluster.AddNode("b", 8);
  world.Run(10 * kSecond);
  EXPECT_THAT(world.ConditionOf("ads", "Guaranteed"), HasSubstr("True Guaranteed"));
}

TEST(KubernetesQueues, StatusesAreNotWrittenWithEveryJob) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "ads", Gpus(8));
  world.Run(2 * kSecond);
  const auto version = [&] {
    return TextAt(world.cluster.Get(Queues(), "", "ads", ""), {"metadata", "resourceVersion"});
  };
  std::set<std::string> versions;
  for (int job = 0; job < 60; ++job) {
    const std::string name = fmt::format("job-{}", job);
    world.AddJob(name.c_str(), "ads", 1);
    world.Run(kSecond / 2);
    versions.insert(version());
  }
  // In 30 s.
  EXPECT_GE(versions.size(), 4u);
  EXPECT_LE(versions.size(), 8u);
  world.Run(10 * kSecond);
  EXPECT_EQ(NumberAt(world.StatusOf("ads"), {"pending"}), 52);
  const std::string last = version();
  world.Run(2 * kMinute);
  EXPECT_EQ(version(), last);
}

TEST(KubernetesQueues, HoldsJobsThatNobodyMayStopUntilTheirQueueTakesThem) {
  QueueWorld world;
  const auto say = [&](bool takes) {
    Json spec = Gpus(8);
    spec["notPreemptible"] = takes;
    world.cluster.Apply(Queues(), "ads", spec);
  };
  say(false);
  world.Run(2 * kSecond);
  Json spec = JobSpec(1, 2);
  spec["queue"] = "ads";
  world.cluster.AddJob("ads", "may-stop", spec, kHour);
  spec["preemptible"] = false;
  world.cluster.AddJob("ads", "may-not", spec, kHour);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(10 * kSecond);
    EXPECT_EQ(world.PhaseOf("may-stop"), "running");
    EXPECT_EQ(world.PhaseOf("may-not"), "pending");
    EXPECT_THAT(world.MessageOf("may-not"), HasSubstr("jobs in queue 'ads' must be preemptible"));
    world.StartController();
  }
  say(true);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("may-not"), "running");
}

TEST(KubernetesQueues, HoldJobsOfOtherNamespacesAndOfHigherPriority) {
  QueueWorld world;
  const auto apply = [&](const Json& members, int max_priority) {
    Json spec = {{"members", members}, {"maxPriority", max_priority}};
    world.cluster.Apply(Queues(), "vision", spec);
  };
  apply({{"namespaces", {"ads"}}}, 5);
  const auto submit = [&](const char* ns, const char* name, int priority) {
    Json spec = JobSpec(1, 1);
    spec["queue"] = "vision";
    spec["priority"] = priority;
    world.cluster.AddJob(ns, name, spec, kHour);
  };
  const auto message = [&](const char* ns, const char* name) {
    return TextAt(*world.cluster.FindJob(ns, name), {"status", "message"});
  };
  submit("ads", "mine", 5);
  submit("ads", "urgent", 6);
  submit("web", "theirs", 0);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(10 * kSecond);
    EXPECT_EQ(world.PhaseOf("mine"), "running");
    EXPECT_THAT(message("ads", "urgent"), HasSubstr("may have at most 5 (spec.maxPriority of the"));
    EXPECT_THAT(message("web", "theirs"),
                HasSubstr("queue 'vision' is for its members, and namespace 'web' is none of"));
    world.StartController();
  }
  // An edit is no way around it, and what runs is not stopped.
  world.cluster.EditJob("ads", "mine", [](Json& spec) { spec["priority"] = 9; });
  apply({{"namespaces", {"web"}}}, 6);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("mine"), "running");
  EXPECT_THAT(message("ads", "urgent"), HasSubstr("namespace 'ads' is none of them"));
  EXPECT_EQ(TextAt(*world.cluster.FindJob("web", "theirs"), {"status", "phase"}), "running");
  world.cluster.MergePatch(GangJobs(), "ads", "mine",
                           {{"metadata", {{"annotations", {{kRequestPreempt, "now"}}}}}}, "");
  world.Run(30 * kSecond);
  EXPECT_EQ(world.PhaseOf("mine"), "pending");
  // Namespaces that nothing binds may use every queue.
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"exemptNamespaces", {"ads"}}}}});
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("mine"), "running");
  EXPECT_EQ(world.PhaseOf("urgent"), "running");
}

// The controller does not know who has submitted a job.
TEST(KubernetesQueues, UsersAndGroupsAreNoMembersUnlessTheWebhookChecksThem) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "vision", {{"members", {{"users", {"ann"}}}}});
  world.AddJob("job", "vision", 1);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("job"), "pending");
  EXPECT_THAT(world.MessageOf("job"), HasSubstr("namespace 'ads' is none of them"));
  EXPECT_THAT(world.ConditionOf("vision", kMembersChecked),
              HasSubstr("False NoWebhook: only the namespaces of spec.members may use the queue"));
  EXPECT_THAT(TextAt(world.StatusOf("vision"), {"message"}), HasSubstr("deploy/kubernetes/admiss"));
  EXPECT_EQ(world.HeldToClients(1), world.MessageOf("job"));
  world.serves_admission = true;
  world.StartController();
  world.Run(90 * kSecond);
  EXPECT_THAT(world.ConditionOf("vision", kMembersChecked), HasSubstr("True Webhook"));
  EXPECT_EQ(TextAt(world.StatusOf("vision"), {"message"}), "");
  // The job is older than the webhook.
  EXPECT_EQ(world.PhaseOf("job"), "pending");
  EXPECT_THAT(world.MessageOf("job"), HasSubstr("who submitted this job was not checked"));
  EXPECT_EQ(world.HeldToClients(1), world.MessageOf("job"));
  world.AddJob("later", "vision", 1);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("later"), "running");
  world.Ask("later", kRequestPreempt);
  EXPECT_EQ(world.HeldToClients(2), "");
  world.cluster.Apply(Queues(), "vision", {{"members", {{"namespaces", {"web"}}}}});
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("later"), "pending");
  EXPECT_EQ(world.HeldToClients(2), world.MessageOf("later"));
}

struct CheckedWorld : QueueWorld {
  CheckedWorld() {
    serves_admission = true;
    StartController();
    cluster.Apply(Queues(), "default", Json::object());
  }
  void SetMembers(const Json& members) {
    cluster.Apply(Queues(), "vision", {{"members", members}});
  }
  void Move(const char* name, const char* queue) {
    cluster.EditJob("ads", name, [&](Json& spec) { spec["queue"] = queue; });
  }
};

// Whoever had a job in the queue before was checked by nobody, and is not checked again.
TEST(KubernetesQueues, HoldJobsThatAreOlderThanTheirMembers) {
  CheckedWorld world;
  world.AddJob("before-queue", "vision", 1);
  world.Run(20 * kSecond);
  world.SetMembers({{"namespaces", {"web"}}});
  world.AddJob("before-users", "vision", 1);
  world.Run(20 * kSecond);
  world.SetMembers({{"users", {"ann"}}});
  world.AddJob("meanwhile", "vision", 1);
  world.Run(20 * kSecond);
  world.AddJob("checked", "vision", 1);
  world.Run(kMinute);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(10 * kSecond);
    for (const char* name : {"before-queue", "before-users", "meanwhile"}) {
      EXPECT_EQ(world.PhaseOf(name), "pending") << name;
      EXPECT_THAT(world.MessageOf(name), HasSubstr("one of them has to create it again")) << name;
    }
    EXPECT_EQ(world.PhaseOf("checked"), "running");
    world.StartController();
  }
  EXPECT_EQ(world.HeldToClients(1), world.MessageOf("before-queue"));
  // Other members change nothing for whoever was one when he submitted.
  world.SetMembers({{"users", {"bob"}}, {"groups", {"ml"}}});
  world.Ask("checked", kRequestPreempt);
  world.Run(30 * kSecond);
  EXPECT_EQ(world.PhaseOf("checked"), "running");
  // Rights that need no user have no gap.
  world.SetMembers({{"users", {"ann"}}, {"namespaces", {"ads"}}});
  world.Run(10 * kSecond);
  for (const char* name : {"before-queue", "before-users", "meanwhile"})
    EXPECT_EQ(world.PhaseOf(name), "running") << name;
}

// The server's clock says when jobs were created, and when the queue was.
TEST(KubernetesQueues, WithASlowClockJobsThatAreOlderThanTheirQueueAreHeld) {
  CheckedWorld world;
  world.leader->clock.ahead_seconds = -600;
  world.Run(2 * kMinute);
  world.AddJob("before", "vision", 1);
  world.SetMembers({{"users", {"ann"}}});
  world.Run(20 * kSecond);
  EXPECT_EQ(world.PhaseOf("before"), "pending");
  world.AddJob("later", "vision", 1);
  world.Run(20 * kSecond);
  EXPECT_EQ(world.PhaseOf("later"), "running");
}

TEST(KubernetesQueues, ExemptNamespacesNeedNoCheckOfUsers) {
  CheckedWorld world;
  world.AddJob("job", "vision", 1);
  world.Run(20 * kSecond);
  world.SetMembers({{"users", {"ann"}}});
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("job"), "pending");
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"exemptNamespaces", {"ads"}}}}});
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("job"), "running");
}

TEST(KubernetesQueues, WhoeverMovesAJobIsCheckedThen) {
  CheckedWorld world;
  world.AddJob("old", "vision", 1);
  world.AddJob("other", "nowhere", 1);
  world.Run(20 * kSecond);
  world.SetMembers({{"users", {"ann"}}});
  world.Run(20 * kSecond);
  EXPECT_EQ(world.PhaseOf("old"), "pending");
  world.Move("other", "vision");
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("other"), "running");
  // An edit is no move.
  world.cluster.EditJob("ads", "old", [](Json& spec) { spec["retries"] = 7; });
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("old"), "pending");
  world.Move("old", "nowhere");
  world.Run(kSecond);
  world.Move("old", "vision");
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("old"), "running");
  // The next leader knows it, too.
  for (const char* name : {"old", "other"}) world.Ask(name, kRequestPreempt);
  world.Run(kSecond);
  world.StartController();
  world.Run(30 * kSecond);
  for (const char* name : {"old", "other"}) EXPECT_EQ(world.PhaseOf(name), "running") << name;
}

TEST(KubernetesQueues, MembersThatAreNobodyAreAnError) {
  QueueWorld world;
  world.cluster.Apply(Queues(), "none", {{"members", Json::object()}});
  world.cluster.Apply(Queues(), "empty", {{"members", {{"users", Json::array()}}}});
  world.cluster.Apply(Queues(), "high", {{"maxPriority", 2'000'000}});
  world.AddJob("job", "empty", 1);
  world.Run(10 * kSecond);
  EXPECT_THAT(world.ConditionOf("none", "Accepted"),
              HasSubstr("members is there, but empty: nobody could use the queue"));
  EXPECT_THAT(world.ConditionOf("empty", "Accepted"), HasSubstr("nobody could use the queue"));
  EXPECT_THAT(world.ConditionOf("high", "Accepted"), HasSubstr("must be from -1000000 to 1000000"));
  EXPECT_EQ(world.PhaseOf("job"), "pending") << "a queue that was never valid is nobody's";
}

// Whether or not it has seen the cluster without any Queue.
TEST(KubernetesQueues, DefaultExistsAsLongAsThereIsNoQueueWhoeverLeads) {
  QueueWorld world;
  world.AddJob("before", "default", 2);
  world.Run(2 * kSecond);
  EXPECT_EQ(world.PhaseOf("before"), "running");
  world.cluster.Apply(Queues(), "ads", Gpus(8));
  world.AddJob("after", "default", 2);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(10 * kSecond);
    EXPECT_EQ(world.PhaseOf("before"), "running");
    EXPECT_EQ(world.PhaseOf("after"), "pending");
    EXPECT_THAT(world.MessageOf("after"), HasSubstr("there is no queue 'default'"));
    EXPECT_EQ(TextAt(world.StatusOf("ads"), {"used", kGpuResource}), "0");
    EXPECT_EQ(NumberAt(world.StatusOf("ads"), {"pending"}), 0);
    world.StartController();
  }
  world.cluster.Delete(Queues(), "", "ads", "", std::nullopt);
  for (int leader = 0; leader < 2; ++leader) {
    world.Run(10 * kSecond);
    EXPECT_EQ(world.PhaseOf("after"), "running");
    world.StartController();
  }
  EXPECT_THAT(world.wrong, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
