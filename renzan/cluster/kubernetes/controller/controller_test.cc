#include "renzan/cluster/kubernetes/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(KubernetesController, RunsAGangToItsEnd) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.cluster.AddJob("ads", "train", JobSpec(3, 4), kMinute);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("train"), "running");
  EXPECT_EQ(NumberAt(*world.cluster.FindJob("ads", "train"), {"status", "gpus"}), 12);
  const auto pods = world.cluster.Objects(Pods());
  ASSERT_THAT(pods, SizeIs(3));
  EXPECT_EQ(TextAt(*pods[0], {"metadata", "name"}), "train-0-0");
  EXPECT_EQ(TextAt(*pods[0], {"spec", "schedulerName"}), "renzan");
  for (const Json* pod : pods) EXPECT_NE(TextAt(*pod, {"spec", "nodeName"}), "");
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 1);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, AGangThatDoesNotFitWaitsAndHasNoPods) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "large", JobSpec(3, 4), kMinute);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("large"), "pending");
  EXPECT_THAT(world.cluster.Objects(Pods()), IsEmpty());
  // The number that it wants.
  EXPECT_EQ(NumberAt(*world.cluster.FindJob("ads", "large"), {"status", "gpus"}), 12);
  world.cluster.AddNode("b", 8);
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("large"), "done");
}

TEST(KubernetesController, ManyGangsStartSomeAtATime) {
  World world;
  for (int node = 0; node < 40; ++node) world.cluster.AddNode(fmt::format("n{}", node), 8);
  for (int job = 0; job < 300; ++job)
    world.cluster.AddJob("ads", fmt::format("job-{:03}", job), JobSpec(1, 1), kMinute);
  world.Run(1, 1);
  EXPECT_THAT(world.cluster.Objects(Pods()), SizeIs(256));
  std::vector<std::string> later;
  for (int job = 0; job < 300; ++job)
    if (const std::string name = fmt::format("job-{:03}", job); world.PhaseOf(name).empty())
      later.push_back(name);
  ASSERT_THAT(later, SizeIs(44));
  // Decisions made meanwhile about those that have not begun are kept.
  world.cluster.EditJob("ads", later[0], [](Json& spec) { spec["cancelled"] = true; });
  world.Run(2, 1);
  EXPECT_THAT(world.cluster.Objects(Pods()), SizeIs(299));
  EXPECT_EQ(world.PhaseOf(later[0]), "cancelled");
  EXPECT_EQ(world.PhaseOf(later[1]), "running");
  world.Run(5 * kSecond);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, AHigherPriorityPreemptsAndTheWorkIsKept) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "long", JobSpec(1, 8), 10 * kMinute);
  world.Run(5 * kMinute);
  Json urgent = JobSpec(1, 8);
  urgent["priority"] = 5;
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 5}}}});
  world.cluster.AddJob("ads", "urgent", urgent, kMinute);
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("urgent"), "running");
  EXPECT_EQ(world.PhaseOf("long"), "pending");
  world.Run(8 * kMinute);
  EXPECT_EQ(world.PhaseOf("urgent"), "done");
  EXPECT_EQ(world.PhaseOf("long"), "done");
  EXPECT_EQ(world.AttemptsOf("long"), 2);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, AFailureIsRetriedAsOftenAsTheJobSays) {
  World world;
  world.cluster.AddNode("a", 8);
  Json spec = JobSpec(2, 1);
  world.cluster.AddJob("ads", "never", spec, kMinute, 1);
  spec["retries"] = 2;
  world.cluster.AddJob("ads", "twice", spec, kMinute, 2);
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("never"), "failed");
  EXPECT_EQ(world.PhaseOf("twice"), "done");
  EXPECT_EQ(world.AttemptsOf("twice"), 3);
}

TEST(KubernetesController, ANodeThatStopsReportingLosesItsGangsOnly) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.cluster.AddJob("ads", "both", JobSpec(2, 5), 10 * kMinute);
  world.cluster.AddJob("ads", "small", JobSpec(1, 1), 10 * kMinute);
  world.Run(kMinute);
  world.cluster.KillNode("b");
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("both"), "pending");
  world.cluster.RestoreNode("b");
  world.Run(20 * kMinute);
  EXPECT_EQ(world.PhaseOf("both"), "done");
  EXPECT_EQ(world.PhaseOf("small"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, ANewLeaderGoesOnWhereTheOldOneEnded) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "first", JobSpec(2, 2), 5 * kMinute);
  world.cluster.AddJob("ads", "second", JobSpec(1, 8), kMinute);
  world.Run(kMinute);
  world.StartController();
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("first"), "done");
  EXPECT_EQ(world.AttemptsOf("first"), 1);
  EXPECT_EQ(world.PhaseOf("second"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

// The workers elsewhere fail because their peer is gone: that is not the job's failure.
TEST(KubernetesController, ANewLeaderKnowsWhatANodeTookWithItBeforeItLed) {
  World world;
  world.cluster.AddNode("a", 4);
  world.cluster.AddNode("b", 4);
  world.cluster.AddJob("ads", "both", JobSpec(2, 4), kMinute);
  world.Run(kMinute / 2);
  ASSERT_EQ(world.PhaseOf("both"), "running");
  world.cluster.KillNode("b");
  // While nobody leads.
  for (const Json* pod : world.cluster.Objects(Pods())) {
    if (TextAt(*pod, {"spec", "nodeName"}) != "a") continue;
    const Json ended = {{"terminated", {{"exitCode", 69}}}};
    world.cluster.MergePatch(
        Pods(), "ads", TextAt(*pod, {"metadata", "name"}),
        {{"status",
          {{"phase", "Failed"}, {"containerStatuses", {{{"name", "main"}, {"state", ended}}}}}}},
        "status");
  }
  world.StartController();
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("both"), "pending");
  world.cluster.RestoreNode("b");
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("both"), "done");
  EXPECT_EQ(world.AttemptsOf("both"), 2);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, APodDeletedByHandStopsTheWholeGangOnce) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), 5 * kMinute);
  world.Run(kMinute);
  world.cluster.Delete(Pods(), "ads", "train-0-1", "", std::nullopt);
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  EXPECT_THAT(world.wrong, IsEmpty());
}

// A worker that ends with 0 when it is stopped looks as if it had done its work, and the others
// wait for it.
TEST(KubernetesController, APodThatIsMissedWhenItIsGoneStopsTheWholeGang) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2, false),
                       {.work_ms = 5 * kMinute, .ends_with_0_when_stopped = true});
  world.Run(kMinute);
  world.cluster.Delete(Pods(), "ads", "train-0-1", "", std::nullopt);
  // Nobody looks for a while.
  for (int second = 0; second < 30; ++second) {
    ++world.clock.seconds;
    world.Play();
  }
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, GangsGoBeforeEvents) {
  World world(1, /*at_once=*/1);
  world.cluster.AddNode("a", 8);
  for (const char* job : {"one", "two", "three"})
    world.cluster.AddJob("ads", job, JobSpec(1, 1), 5 * kMinute);
  world.leader->Work();
  while (world.leader->controller.live().size() < 3) world.leader->Work();
  for (size_t turns = 0; world.cluster.Objects(Pods()).size() < 3; ++turns) {
    ASSERT_LT(turns, 10);
    EXPECT_THAT(world.Told(), IsEmpty());
    world.leader->Work();
  }
  world.Run(kMinute);
  EXPECT_EQ(world.Told().size(), 3);
}

TEST(KubernetesController, APodThatIsSeenWhenItHasEndedAfterItWasDeletedIsNoFailure) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 2, false), 5 * kMinute);
  world.Run(kMinute);
  world.cluster.Delete(Pods(), "ads", "train-0-0", "", std::nullopt);
  // Nobody looks for a while.
  for (int second = 0; second < 6; ++second) {
    ++world.clock.seconds;
    world.Play();
  }
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
}

TEST(KubernetesController, AWaitingJobSaysWhyInItsStatus) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "large", JobSpec(1, 9), kMinute);
  world.cluster.AddJob("ads", "first", JobSpec(1, 5, false), 5 * kMinute);
  world.cluster.AddJob("ads", "second", JobSpec(1, 5, false), kMinute);
  Json lost = JobSpec(1, 1);
  lost["queue"] = "nowhere";
  world.cluster.AddJob("ads", "lost", lost, kMinute);
  world.Run(5 * kSecond);
  const auto said = [&](const char* name, const char* key) {
    return TextAt(*world.cluster.FindJob("ads", name), {"status", key});
  };
  EXPECT_EQ(said("large", "reason"), "Infeasible");
  EXPECT_EQ(said("second", "reason"), "Resources");
  EXPECT_THAT(said("second", "message"), HasSubstr("a has 3 of 8 GPUs free"));
  EXPECT_THAT(said("lost", "message"), HasSubstr("there is no queue 'nowhere'"));
  EXPECT_EQ(said("first", "reason"), "Started");
  const Json& conditions = At(*world.cluster.FindJob("ads", "second"), {"status", "conditions"});
  ASSERT_EQ(conditions.size(), 1u) << "of what has not happened nothing is said";
  EXPECT_EQ(TextAt(conditions[0], {"type"}), "Running");
  EXPECT_EQ(TextAt(conditions[0], {"status"}), "False");
  EXPECT_EQ(TextAt(conditions[0], {"reason"}), "Resources");
}

TEST(KubernetesController, TellsWhatHappensInEvents) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 4), kMinute);
  world.Run(2 * kMinute);
  std::vector<std::string> reasons;
  for (const Json* event : world.cluster.Objects(Events()))
    reasons.push_back(TextAt(*event, {"reason"}));
  EXPECT_THAT(reasons, ::testing::UnorderedElementsAre("Started", "Done"));
}

TEST(KubernetesController, WorkersOfAGangFindEachOtherByName) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.cluster.AddJob("ads", "pair", JobSpec(2, 5), kMinute);
  world.cluster.AddJob("ads", "alone", JobSpec(1, 1), kMinute);
  Json on_host = JobSpec(2, 1);
  on_host["template"]["spec"]["hostNetwork"] = true;
  world.cluster.AddJob("ads", "host", on_host, kMinute);
  world.Run(5 * kSecond);
  const auto variable = [&](const char* pod, const char* name) {
    const Json object = world.cluster.Get(Pods(), "ads", pod, "");
    for (const Json& each : At(object["spec"]["containers"][0], {"env"}))
      if (TextAt(each, {"name"}) == name) return TextAt(each, {"value"});
    return std::string("none");
  };
  const auto services = world.cluster.Objects(Services());
  ASSERT_THAT(services, SizeIs(1));
  EXPECT_EQ(TextAt(*services[0], {"metadata", "name"}), "pair-workers");
  EXPECT_EQ(TextAt(*services[0], {"spec", "clusterIP"}), "None");
  EXPECT_EQ(TextAt(*services[0], {"spec", "selector", kRankLabel}), "0");
  const Json second = world.cluster.Get(Pods(), "ads", "pair-0-1", "");
  EXPECT_EQ(TextAt(second, {"spec", "hostname"}), "pair-0-1");
  EXPECT_EQ(TextAt(second, {"spec", "subdomain"}), "pair-workers");
  EXPECT_EQ(variable("pair-0-1", "MASTER_ADDR"), "pair-0-0.pair-workers");
  EXPECT_EQ(variable("pair-0-1", "RANK"), "1");
  EXPECT_EQ(variable("pair-0-1", "WORLD_SIZE"), "2");
  EXPECT_EQ(variable("alone-0-0", "MASTER_ADDR"), "none");
  EXPECT_EQ(variable("alone-0-0", "RENZAN_GRACE_SECONDS"), "30");
  EXPECT_EQ(variable("host-0-1", "MASTER_ADDR"), "address-of-a");
  EXPECT_NE(variable("host-0-1", "MASTER_PORT"), variable("pair-0-1", "MASTER_PORT"));
}

TEST(KubernetesController, AGangThatLosesItsNodeBeforeItHasPodsStartsElsewhere) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 8), kMinute);
  // Six lists, and the status; it is killed before it creates a pod.
  world.leader->connection.requests_left = 7;
  EXPECT_THROW(world.leader->Work(), Killed);
  ASSERT_EQ(world.PhaseOf("train"), "running");
  ASSERT_THAT(world.cluster.Objects(Pods()), IsEmpty());
  world.StartController();
  world.Run(kSecond);
  world.cluster.KillNode("a");
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
}

// Created and deleted while the watch was cut off, so it never reports them.
TEST(KubernetesController, PodsThatNoWatchHasShownAreMissedAllTheSame) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), 5 * kMinute);
  world.leader->Work();
  ASSERT_THAT(world.cluster.Objects(Pods()), SizeIs(2));
  world.cluster.Delete(Pods(), "ads", "train-0-0", "", 0);
  world.cluster.Delete(Pods(), "ads", "train-0-1", "", 0);
  world.cluster.Compact();
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
}

TEST(KubernetesController, ANewLeaderUsesTheRoomThatIsLeftAtOnce) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "first", JobSpec(1, 4), 5 * kMinute);
  world.Run(kMinute);
  world.StartController();
  world.cluster.AddJob("ads", "second", JobSpec(1, 4), kMinute);
  world.Run(5 * kSecond);
  EXPECT_EQ(world.PhaseOf("second"), "running");
}

TEST(KubernetesController, RoomThatWasPromisedTwiceIsThereOnce) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "runs", JobSpec(1, 8), 10 * kMinute);
  world.Run(kMinute);
  // Its leader decided that long ago; the request was still in flight.
  world.cluster.AddJob("ads", "late", JobSpec(1, 8), kMinute);
  world.Run(kSecond);
  world.cluster.MergePatch(
      GangJobs(), "ads", "late",
      {{"status",
        {{"phase", "running"}, {"attempts", 1}, {"placement", {{{"node", "a"}, {"workers", 1}}}}}}},
      "status");
  world.Run(kSecond);
  EXPECT_EQ(world.PhaseOf("late"), "running");
  // As its kubelet reports every few minutes.
  world.cluster.SetNode("a", [](Json& node) { node["status"]["conditions"][0]["beat"] = 1; });
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("late"), "pending");
  world.Run(15 * kMinute);
  EXPECT_EQ(world.PhaseOf("runs"), "done");
  EXPECT_EQ(world.PhaseOf("late"), "done");
  EXPECT_EQ(world.cluster.refused, 0);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesController, AGangThatTheServerRefusesSaysWhy) {
  World world;
  world.cluster.AddNode("a", 8);
  // Somebody else's pod is in the way.
  world.cluster.Create(Pods(), "ads", {{"metadata", {{"name", "train-0-1"}}}, {"spec", {}}});
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), kMinute);
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  std::vector<std::string> messages;
  for (const Json* event : world.cluster.Objects(Events()))
    messages.push_back(TextAt(*event, {"message"}));
  EXPECT_THAT(messages, ::testing::Contains(HasSubstr("train-0-1")));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
