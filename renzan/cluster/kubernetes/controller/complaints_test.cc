// Complaints of other systems' users that cannot occur here. Each test is named after what it
// shows; the comment names the complaint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ConditionOf(const World& world, const std::string& job, const char* type) {
  for (const Json& condition : At(*world.cluster.FindJob("ads", job), {"status", "conditions"}))
    if (TextAt(condition, {"type"}) == type) return TextAt(condition, {"status"});
  return "none";
}

std::vector<std::string> PodsOf(const World& world, const std::string& job) {
  std::vector<std::string> names;
  for (const Json* pod : world.cluster.Objects(Pods()))
    if (TextAt(*pod, {"metadata", "labels", kJobNameLabel}) == job)
      names.push_back(TextAt(*pod, {"metadata", "name"}));
  return names;
}

// kubeflow/trainer 3995.
TEST(KubernetesComplaints, TheSizeOfAWaitingJobCanBeChanged) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "large", JobSpec(3, 4), kMinute);
  world.Run(10 * kSecond);
  ASSERT_EQ(world.PhaseOf("large"), "pending");
  world.cluster.EditJob("ads", "large", [](Json& spec) { spec["replicas"] = 2; });
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("large"), "running");
  EXPECT_THAT(PodsOf(world, "large"), SizeIs(2));
}

TEST(KubernetesComplaints, AGangWhoseVolumeIsMissingTakesNoRoom) {
  World world;
  world.cluster.AddNode("a", 8);
  Json spec = JobSpec(1, 8);
  spec["template"]["spec"]["volumes"] = {
      {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "clicks"}}}}};
  world.cluster.AddJob("ads", "train", spec, kMinute);
  world.Run(10 * kSecond);
  EXPECT_THAT(PodsOf(world, "train"), IsEmpty());
  EXPECT_THAT(world.StatusOf("train", "message"), HasSubstr("clicks"));
  world.cluster.Create(PersistentVolumeClaims(), "ads", {{"metadata", {{"name", "clicks"}}}});
  world.Run(5 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

// kubeflow/trainer 3737, 2991.
TEST(KubernetesComplaints, FinishedJobsDoNotRunAgainWhenTheirPodsAreDeleted) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), kMinute);
  world.Run(2 * kMinute);
  ASSERT_EQ(world.PhaseOf("train"), "done");
  for (const std::string& pod : PodsOf(world, "train"))
    world.cluster.Delete(Pods(), "ads", pod, "", 0);
  world.cluster.Delete(Services(), "ads", "train-workers", "", 0);
  world.cluster.Compact();
  world.Run(kMinute);
  world.StartController();
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 1);
  EXPECT_THAT(PodsOf(world, "train"), IsEmpty());
  EXPECT_THAT(world.wrong, IsEmpty());
}

// kubeflow/sdk 803: a resumed job reports Created for its whole run.
TEST(KubernetesComplaints, AJobThatRunsAgainSaysWhatIsTrueAllTheTime) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "train", JobSpec(1, 8), 5 * kMinute);
  world.Run(kMinute);
  Json urgent = JobSpec(1, 8);
  urgent["priority"] = 5;
  world.cluster.Apply(ClusterPolicies(), "default", {{"limits", {{"maxPriority", 5}}}});
  world.cluster.AddJob("ads", "urgent", urgent, kMinute);
  int attempts_seen = 0, waits_seen = 0;
  for (int second = 0; second < 600; ++second) {
    world.Run(kSecond);
    const std::string phase = world.PhaseOf("train");
    int running = 0;
    for (const Json* pod : world.cluster.Objects(Pods()))
      running +=
          TextAt(*pod, {"metadata", "labels", kJobNameLabel}) == "train" && PodFrom(*pod).running;
    // The reverse is possible: a pod may be about to start.
    if (running > 0) {
      EXPECT_THAT(phase, ::testing::AnyOf("running", "stopping")) << second;
    }
    if (phase == "done" || phase == "pending") {
      EXPECT_EQ(running, 0) << second;
    }
    EXPECT_EQ(ConditionOf(world, "train", "Running"), phase == "running" ? "True" : "False");
    EXPECT_EQ(ConditionOf(world, "train", "Complete"), phase == "done" ? "True" : "none");
    attempts_seen = std::max(attempts_seen,
                             phase == "running" ? static_cast<int>(world.AttemptsOf("train")) : 0);
    waits_seen += phase == "pending";
  }
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(attempts_seen, 2);
  EXPECT_GT(waits_seen, 0);
}

// kubeflow/trainer 2000.
TEST(KubernetesComplaints, AHundredWorkersRestartAfterOneFails) {
  World world;
  for (int node = 0; node < 13; ++node) world.cluster.AddNode(fmt::format("n{}", node), 8);
  Json spec = JobSpec(100, 1);
  spec["retries"] = 1;
  world.cluster.AddJob("ads", "train", spec, kMinute, 1);
  world.Run(3 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_EQ(world.AttemptsOf("train"), 2);
  EXPECT_EQ(NumberAt(*world.cluster.FindJob("ads", "train"), {"status", "facts", "failures"}), 1);
  EXPECT_THAT(world.wrong, IsEmpty());
}

// kubeflow/trainer 1282: 99 workers run, one pends.
TEST(KubernetesComplaints, AGangThatIsCreatedInPartIsDeletedWhole) {
  for (int after = 0; after < 220; after += 20) {
    SCOPED_TRACE(after);
    World world;
    for (int node = 0; node < 13; ++node) world.cluster.AddNode(fmt::format("n{}", node), 8);
    world.cluster.AddJob("ads", "train", JobSpec(100, 1), kMinute);
    // The server goes away midway: after four lists, the status, pods, the Service, bindings.
    int requests = 0;
    world.leader->connection.meanwhile = [&] {
      world.network.is_down = ++requests > 6 + after && requests < 6 + after + 150;
    };
    world.Run(5 * kSecond);
    world.network.is_down = false;
    world.leader->connection.meanwhile = nullptr;
    for (int second = 0; second < 120; ++second) {
      world.Run(kSecond);
      std::map<std::string, int> running;
      for (const Json* pod : world.cluster.Objects(Pods()))
        if (PodFrom(*pod).running && !PodFrom(*pod).deleting)
          ++running[TextAt(*pod, {"metadata", "labels", kAttemptLabel})];
      EXPECT_LE(running.size(), 1u);
    }
    EXPECT_EQ(world.PhaseOf("train"), "done");
    EXPECT_THAT(world.wrong, IsEmpty());
  }
}

// kuberay PR 3592: workers take the room that their own head needs.
TEST(KubernetesComplaints, WorkersDoNotTakeTheRoomOfTheirOwnGang) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "one", JobSpec(5, 1), kMinute);
  world.cluster.AddJob("ads", "two", JobSpec(5, 1), kMinute);
  int most = 0;
  for (int second = 0; second < 300; ++second) {
    world.Run(kSecond);
    std::map<std::string, int> placed;
    for (const Json* pod : world.cluster.Objects(Pods()))
      if (!PodFrom(*pod).ended) ++placed[PodFrom(*pod).job_uid];
    // A gang has all of its pods or none.
    for (const auto& [uid, pods] : placed) EXPECT_EQ(pods, 5) << second;
    most = std::max(most, static_cast<int>(placed.size()));
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(world.PhaseOf("one"), "done");
  EXPECT_EQ(world.PhaseOf("two"), "done");
}

// kuberay 4643: the pod group is deleted while its cluster lives.
TEST(KubernetesComplaints, TheServiceOfAGangLivesAsLongAsItsJob) {
  World world;
  world.cluster.AddNode("a", 8);
  Json spec = JobSpec(2, 2);
  spec["retries"] = 2;
  world.cluster.AddJob("ads", "train", spec, kMinute, 1);
  for (int second = 0; second < 180; ++second) {
    world.Run(kSecond);
    EXPECT_THAT(world.cluster.Objects(Services()), SizeIs(1)) << second;
  }
  ASSERT_EQ(world.PhaseOf("train"), "done");
  world.cluster.DeleteJob("ads", "train");
  world.Run(kMinute);
  EXPECT_THAT(world.cluster.Objects(Services()), IsEmpty());
}

// volcano 4311: "pod group is not ready" is all that users see.
TEST(KubernetesComplaints, AWaitingJobNamesTheConstraint) {
  World world;
  world.cluster.AddNode("a", 8, {{"gpu-type", "old"}});
  const auto add = [&](const char* name, const std::function<void(Json&)>& edit) {
    Json spec = JobSpec(2, 2);
    edit(spec);
    world.cluster.AddJob("ads", name, spec, kHour);
  };
  add("runs", [](Json& spec) { spec["replicas"] = 3; });
  add("room", [](Json&) {});
  add("size", [](Json& spec) { spec["replicas"] = 5; });
  add("label", [](Json& spec) {
    spec["template"]["spec"]["nodeSelector"] = {{"gpu-type", "new"}};
  });
  add("queue", [](Json& spec) { spec["queue"] = "nowhere"; });
  world.Run(10 * kSecond);
  const auto why = [&](const char* name) { return world.StatusOf(name, "message"); };
  EXPECT_THAT(why("room"), HasSubstr("room now for 1 (1 on a)"));
  EXPECT_THAT(why("size"), HasSubstr("on the empty cluster"));
  EXPECT_THAT(why("label"), HasSubstr("gpu-type"));
  EXPECT_THAT(why("queue"), HasSubstr("there is no queue 'nowhere'"));
}

// kueue 9482, 7433: admitted, and still gated.
TEST(KubernetesComplaints, WhatRunsIsBound) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddNode("b", 8);
  world.network.no_answer = 0.1;
  for (int job = 0; job < 8; ++job)
    world.cluster.AddJob("ads", fmt::format("job-{}", job), JobSpec(2, 2), kMinute);
  int checked = 0;
  std::map<std::string, int> gated;  // seconds
  for (int second = 0; second < 300; ++second) {
    world.Run(kSecond);
    for (const Json* pod : world.cluster.Objects(Pods())) {
      const Pod facts = PodFrom(*pod);
      const std::string job = TextAt(*pod, {"metadata", "labels", kJobNameLabel});
      if (world.PhaseOf(job) != "running" || facts.attempt != world.AttemptsOf(job) - 1) continue;
      // A worker that failed to start is told to stop once that has been written, which may fail as
      // well.
      if (facts.node.empty()) {
        EXPECT_LT(++gated[facts.name], 10) << facts.name;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

// volcano 5330: a stuck job holds its quota.
TEST(KubernetesComplaints, AJobThatCannotStartGivesItsRoomBackAndSaysWhy) {
  World world;
  world.cluster.AddNode("a", 8);
  Json stuck = JobSpec(1, 8);
  stuck["startTimeout"] = "5m";
  stuck["retries"] = 1;
  stuck["template"]["spec"]["containers"][0]["image"] = kNoImage;
  world.cluster.AddJob("ads", "stuck", stuck, kMinute);
  world.Run(10 * kSecond);
  EXPECT_THAT(world.StatusOf("stuck", "message"),
              HasSubstr("worker 0 on a: ErrImagePull: no such image"));
  world.cluster.AddJob("ads", "next", JobSpec(1, 8), kMinute);
  world.Run(4 * kMinute);
  EXPECT_EQ(world.PhaseOf("next"), "pending");
  // A new leader counts from the start as well.
  world.StartController();
  world.Run(12 * kMinute);
  EXPECT_EQ(world.PhaseOf("stuck"), "failed");
  EXPECT_EQ(world.AttemptsOf("stuck"), 2);
  EXPECT_THAT(world.StatusOf("stuck", "message"), HasSubstr("ErrImagePull: no such image"));
  EXPECT_EQ(world.PhaseOf("next"), "done");
  for (const char* job : {"stuck", "next"}) {
    const bool is_done = job == std::string("next");
    EXPECT_EQ(ConditionOf(world, job, "Failed"), is_done ? "none" : "True");
    EXPECT_EQ(ConditionOf(world, job, "Complete"), is_done ? "True" : "none");
    EXPECT_EQ(ConditionOf(world, job, "Running"), "False");
  }
}

// The pause before the next attempt does not hide why another attempt is needed.
TEST(KubernetesComplaints, AJobThatWillBeTriedAgainSaysHowItFailed) {
  World world;
  world.cluster.AddNode("a", 8);
  Json spec = JobSpec(1, 1);
  spec["retries"] = 1;
  spec["retryBackoff"] = "5m";
  world.cluster.AddJob("ads", "train", spec, kMinute, 1);
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "pending");
  EXPECT_EQ(world.StatusOf("train", "reason"), "Backoff");
  EXPECT_THAT(world.StatusOf("train", "message"), HasSubstr("worker 0 on a exited with 1"));
}

// Through somebody else's Service, workers would not find each other.
TEST(KubernetesComplaints, AForeignServiceOfAGangsNameIsNamedAndWaitedFor) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.Create(Services(), "ads", {{"metadata", {{"name", "train-workers"}}}});
  world.cluster.AddJob("ads", "train", JobSpec(2, 2), kMinute);
  world.Run(kMinute);
  EXPECT_THAT(world.StatusOf("train", "message"),
              HasSubstr("the Service train-workers in the namespace ads is not this job's"));
  EXPECT_THAT(PodsOf(world, "train"), IsEmpty());
  world.cluster.Delete(Services(), "ads", "train-workers", "", 0);
  world.Run(10 * kMinute);
  EXPECT_EQ(world.PhaseOf("train"), "done");
  EXPECT_THAT(world.wrong, IsEmpty());
}

// A node with less than it claims: not retried as fast as requests can be sent.
TEST(KubernetesComplaints, AGangThatKubeletsRefuseWaitsLongerEachTime) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.kubelet_refuses = 1;
  world.cluster.AddJob("ads", "train", JobSpec(1, 8), kMinute);
  world.Run(10 * kMinute);
  EXPECT_GT(world.AttemptsOf("train"), 2);
  EXPECT_LT(world.AttemptsOf("train"), 12);
  EXPECT_THAT(world.Told(), ::testing::Contains(HasSubstr("OutOfnvidia.com/gpu")));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
