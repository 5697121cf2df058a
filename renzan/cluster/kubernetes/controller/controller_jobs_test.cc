// What users do with their jobs, and what others do with the objects meanwhile.

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

// This job comes first, so that no other has created a queue or a request for it.
TEST(KubernetesControllerJobs, AnInvalidJobWaitsAndHoldsUpNobody) {
  World world;
  world.cluster.AddNode("a", 8);
  Json invalid = JobSpec(1, 8);
  invalid["timeout"] = "soon";
  world.cluster.AddJob("ads", "invalid", invalid, kMinute);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("invalid"), "pending");
  EXPECT_THAT(world.StatusOf("invalid", "message"), HasSubstr("timeout"));
  EXPECT_THAT(world.leader->controller.violations(), IsEmpty());
  world.cluster.AddJob("ads", "valid", JobSpec(1, 8), kMinute);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("valid"), "running");
}

TEST(KubernetesControllerJobs, CancelAndDelete) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "cancelled", JobSpec(1, 4), kHour);
  world.cluster.AddJob("ads", "deleted", JobSpec(1, 4), kHour);
  world.cluster.AddJob("ads", "waiting", JobSpec(1, 8), kMinute);
  world.Run(kMinute);
  world.cluster.EditJob("ads", "cancelled", [](Json& spec) { spec["cancelled"] = true; });
  world.cluster.DeleteJob("ads", "deleted");
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("cancelled"), "cancelled");
  EXPECT_EQ(world.PhaseOf("waiting"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, AHeldJobStartsOnlyWhenItIsReleased) {
  World world;
  world.cluster.AddNode("a", 8);
  Json held = JobSpec(1, 4);
  held["held"] = true;
  world.cluster.AddJob("ads", "waits", held, kHour);
  world.cluster.AddJob("ads", "runs", JobSpec(1, 4), kHour);
  world.Run(kMinute);
  EXPECT_EQ(world.PhaseOf("waits"), "pending");
  EXPECT_THAT(world.StatusOf("waits", "message"), HasSubstr("held"));
  const auto hold = [&](const char* name, bool value) {
    world.cluster.EditJob("ads", name, [&](Json& spec) { spec["held"] = value; });
    world.Run(kMinute);
  };
  hold("runs", true);
  EXPECT_EQ(world.PhaseOf("runs"), "running") << "a hold stops nothing";
  world.cluster.MergePatch(GangJobs(), "ads", "runs",
                           {{"metadata", {{"annotations", {{kRequestPreempt, "now"}}}}}}, "");
  world.StartController();  // a new leader knows it, too
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("runs"), "pending");
  EXPECT_EQ(world.PhaseOf("waits"), "pending");
  for (const char* name : {"waits", "runs"}) hold(name, false);
  for (const char* name : {"waits", "runs"}) EXPECT_EQ(world.PhaseOf(name), "running");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, HonoursRequestsForCheckpointsAndStopsOnce) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), 10 * kMinute);
  world.Run(kMinute);
  const auto request = [&](const char* annotation) {
    world.cluster.MergePatch(GangJobs(), "ads", "train",
                             {{"metadata", {{"annotations", {{annotation, "now"}}}}}}, "");
    world.Run(kMinute);
  };
  request(kRequestCheckpoint);
  const Json pod = world.cluster.Get(Pods(), "ads", "train-0-1", "");
  EXPECT_NE(TextAt(pod, {"metadata", "annotations", kCheckpointRequestAnnotation}), "");
  EXPECT_EQ(world.AttemptsOf("train"), 1);
  request(kRequestPreempt);
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  // A new leader knows which requests have been honoured.
  world.StartController();
  world.Run(20 * kMinute);
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, HonoursARequestThatNoLeaderSawWhenItWasMade) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), 10 * kMinute);
  world.Run(kMinute);
  world.cluster.MergePatch(GangJobs(), "ads", "train",
                           {{"metadata", {{"annotations", {{kRequestPreempt, "now"}}}}}}, "");
  world.StartController();
  world.Run(kMinute);
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  EXPECT_EQ(world.PhaseOf("train"), "running");
}

TEST(KubernetesControllerJobs, AnotherSizeIsHonouredWhileItRuns) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "saves", JobSpec(1, 2), 10 * kMinute);
  world.cluster.AddJob("ads", "does-not", JobSpec(1, 1, false), 10 * kMinute);
  world.Run(kMinute);
  for (const char* name : {"saves", "does-not"})
    world.cluster.EditJob("ads", name, [](Json& spec) { spec["replicas"] = 3; });
  world.Run(kMinute);
  EXPECT_EQ(NumberAt(*world.cluster.FindJob("ads", "saves"), {"status", "replicas"}), 3);
  EXPECT_EQ(NumberAt(*world.cluster.FindJob("ads", "does-not"), {"status", "replicas"}), 1);
  for (const char* name : {"saves", "does-not"}) {
    const Json& job = *world.cluster.FindJob("ads", name);
    EXPECT_EQ(NumberAt(job, {"status", "observedGeneration"}),
              NumberAt(job, {"metadata", "generation"}));
  }
  world.Run(20 * kMinute);
  EXPECT_EQ(world.PhaseOf("saves"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, ASizeThatWasChangedWhileNobodyLedIsHonoured) {
  World world;
  world.cluster.AddNode("a", 16);
  world.cluster.AddJob("ads", "saves", JobSpec(1, 2), 10 * kMinute);
  world.cluster.AddJob("ads", "does-not", JobSpec(1, 1, false), 10 * kMinute);
  world.cluster.AddJob("ads", "waits", JobSpec(3, 6), 5 * kMinute);
  world.Run(kMinute);
  ASSERT_EQ(world.PhaseOf("waits"), "pending");
  for (const char* name : {"saves", "does-not"})
    world.cluster.EditJob("ads", name, [](Json& spec) { spec["replicas"] = 3; });
  world.cluster.EditJob("ads", "waits", [](Json& spec) { spec["replicas"] = 1; });
  world.StartController();
  world.Run(kMinute);
  const auto workers = [&](const char* name) {
    return NumberAt(*world.cluster.FindJob("ads", name), {"status", "replicas"});
  };
  EXPECT_EQ(workers("saves"), 3);
  EXPECT_EQ(world.AttemptsOf("saves"), 2);
  EXPECT_EQ(workers("does-not"), 1);
  EXPECT_EQ(world.AttemptsOf("does-not"), 1);
  EXPECT_EQ(workers("waits"), 1);
  for (const char* name : {"saves", "does-not", "waits"}) {
    const Json& job = *world.cluster.FindJob("ads", name);
    EXPECT_EQ(NumberAt(job, {"status", "observedGeneration"}), 2) << name;
  }
  world.Run(20 * kMinute);
  EXPECT_EQ(world.PhaseOf("saves"), "done");
  EXPECT_EQ(world.PhaseOf("does-not"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, AJobThatWasEditedWhileItRanEndsAndDoesNotStartAgain) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 1, false), kMinute);
  world.Run(10 * kSecond);
  world.cluster.EditJob("ads", "train", [](Json& spec) { spec["replicas"] = 2; });
  world.Run(5 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 1);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, WhatAppliesOnlyLaterIsSaidAndTheWorkersKeepTheirRoom) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 8, false), 5 * kMinute);
  world.Run(kMinute);
  const auto is_applied = [&] {
    for (const Json& condition :
         At(*world.cluster.FindJob("ads", "train"), {"status", "conditions"}))
      if (TextAt(condition, {"type"}) == "SpecApplied") return TextAt(condition, {"status"});
    return std::string("not said");
  };
  EXPECT_EQ(is_applied(), "not said");
  world.cluster.EditJob("ads", "train",
                        [](Json& spec) { spec["template"] = JobSpec(1, 1)["template"]; });
  world.Run(kSecond);
  EXPECT_EQ(is_applied(), "False");
  world.cluster.AddJob("ads", "other", JobSpec(1, 7), kMinute);
  world.Run(kMinute);
  // A new leader reads the new specification only.
  world.StartController();
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(is_applied(), "True");
  EXPECT_EQ(world.PhaseOf("other"), "done");
  EXPECT_EQ(world.cluster.refused, 0);
}

TEST(KubernetesControllerJobs, SomebodyWhoWritesToAJobAllTheTimeDoesNotStopIt) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), kMinute);
  int requests = 0;
  world.leader->connection.meanwhile = [&] {
    if (++requests % 3 != 0)
      world.cluster.MergePatch(
          GangJobs(), "ads", "train",
          {{"metadata", {{"annotations", {{"touched", std::to_string(requests)}}}}}}, "");
  };
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

// Its leader learns of that by a conflict, before the watch reports it.
TEST(KubernetesControllerJobs, AJobWhoseNameIsAnothersByNowKeepsItsRoomUntilItsPodsHaveEnded) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 4), 10 * kMinute);
  world.Run(kMinute);
  world.cluster.DeleteJob("ads", "train");
  world.cluster.AddJob("ads", "train", JobSpec(2, 4), kMinute);
  world.cluster.Delete(Pods(), "ads", "train-0-1", "", std::nullopt);
  world.leader->Show(Source::kPods);
  for (int turn = 0; turn < 2; ++turn) world.leader->controller.Turn();
  const auto& live = world.leader->controller.live();
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_TRUE(live.begin()->second.deleted);
  EXPECT_THAT(live.begin()->second.workers, SizeIs(2));
  world.Run(5 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.cluster.refused, 0);
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesControllerJobs, ANumberThatAnotherLeaderHasGivenIsNotGivenAgain) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "numbered", JobSpec(1, 9), kMinute);
  world.Run(kSecond);
  // Its leader decided that long ago; the request was still in flight.
  world.cluster.MergePatch(GangJobs(), "ads", "numbered", {{"status", {{"facts", {{"id", 2}}}}}},
                           "status");
  world.Run(kSecond);
  world.cluster.AddJob("ads", "new", JobSpec(1, 8), kMinute);
  world.Run(kSecond);
  EXPECT_THAT(world.leader->controller.live(), SizeIs(2));
  EXPECT_THAT(world.leader->controller.violations(), IsEmpty());
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("new"), "done");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
