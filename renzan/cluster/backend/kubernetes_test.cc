// Jobs of Kubernetes as the verbs see them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/backend/explain_job.h"
#include "renzan/cluster/backend/kubernetes_backend_testing.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using ::testing::HasSubstr;

TEST_F(KubernetesBackendTest, SubmitsRunsAndCancelsAJob) {
  const Submitted job = Submit("{name: train, replicas: 3, resources: {gpu: 4}, command: [x]}");
  EXPECT_EQ(job.job, "ads/train");
  Document listed = backend_->ListJobs({}).at("jobs");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["id"], nullptr);
  EXPECT_EQ(listed[0]["reason"], "no controller has seen it yet");
  Run(5 * kSecond);
  listed = backend_->ListJobs({}).at("jobs");
  EXPECT_EQ(listed[0]["id"], 1);
  EXPECT_EQ(listed[0]["state"], "running");
  EXPECT_EQ(listed[0]["user"], "ads");
  EXPECT_EQ(listed[0]["workers"], 3);
  EXPECT_EQ(listed[0]["resources"]["gpu"], 4);
  EXPECT_EQ(listed[0]["nodes"].size(), 2u);
  for (const char* name : {"1", "train", "ads/train"})
    EXPECT_EQ(backend_->ShowJob(name).at("name"), "train");
  const Document shown = backend_->ShowJob("1");
  ASSERT_EQ(shown["attempts_list"].size(), 1u);
  EXPECT_EQ(shown["attempts_list"][0]["state"], "running");
  EXPECT_FALSE(shown["events"].empty());

  EXPECT_EQ(backend_->StateOfJob("train").at("state"), "running");
  EXPECT_EQ(backend_->ActOn("1", JobAction::kCancel), "");
  Run(kMinute);
  EXPECT_EQ(StateOf("1"), "cancelled");
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->ActOn("1", JobAction::kCancel); }),
              HasSubstr("ended already"));
  clock_.seconds += 3601;
  EXPECT_EQ(backend_->ListJobs({}).at("jobs").size(), 0u);
  EXPECT_EQ(backend_->ListJobs({.all = true}).at("jobs").size(), 1u);
  EXPECT_EQ(backend_->ListJobs({.all = true, .limit = 0}).at("more"), 1);
}

// By number, as `renzan job cancel --name` does.
TEST_F(KubernetesBackendTest, OneListIsEnoughForManyJobs) {
  for (const char* name : {"one", "two", "three"}) AddJob("ads", name, 1, 1);
  Run(5 * kSecond);
  lists_ = 0;
  const Document listed = backend_->ListJobs({}).at("jobs");
  ASSERT_EQ(listed.size(), 3u);
  for (const Document& job : listed) backend_->ActOn(job["id"].dump(), JobAction::kHold);
  EXPECT_EQ(lists_, 1);
  // The name belongs to another job by now.
  cluster_.DeleteJob("ads", "two");
  AddJob("ads", "two", 1, 1);
  Run(5 * kSecond);
  EXPECT_THAT(Refusal(ErrorCode::kNoInput, [&] { backend_->ActOn("2", JobAction::kCancel); }),
              HasSubstr("there is no job 2"));
  EXPECT_EQ(StateOf("ads/two"), "running");
}

TEST_F(KubernetesBackendTest, AJobThatCannotBeReadDoesNotHideTheOthers) {
  AddJob("ads", "mine", 1, 4);
  AddJob("ads", "strange", 1, 4);
  Run(5 * kSecond);
  cluster_.MergePatch(kubernetes::GangJobs(), "ads", "strange", {{"status", {{"phase", "dreams"}}}},
                      "status");
  const Document listed = backend_->ListJobs({});
  ASSERT_EQ(listed.at("jobs").size(), 1u);
  EXPECT_EQ(listed.at("jobs")[0]["name"], "mine");
  for (const Document& answer : {listed, backend_->Status(), backend_->Usage({})}) {
    ASSERT_EQ(answer.at("unreadable").size(), 1u);
    EXPECT_THAT(answer.at("unreadable")[0].get<std::string>(),
                HasSubstr("ads/strange: its status has the unknown phase dreams: use"));
  }
  EXPECT_EQ(backend_->Status().at("jobs").at("running"), 1);
  EXPECT_EQ(StateOf("1"), "running");
  EXPECT_THAT(ExplainJob(*backend_, "mine").at("why").get<std::string>(), HasSubstr("running"));
  EXPECT_THAT(Refusal(ErrorCode::kData, [&] { backend_->ShowJob("ads/strange"); }),
              HasSubstr("dreams"));
  // The leader ignores it, and its pods count as pods of others.
  world_.StartController();
  Run(5 * kSecond);
  EXPECT_EQ(backend_->Observe().snapshot.nodes[0].capacity,
            world_.leader->controller.snapshot().nodes[0].capacity);
}

TEST_F(KubernetesBackendTest, SendsAManifestAsItIs) {
  const Submitted job = Submit(
      "{apiVersion: renzan.dev/v1alpha1, kind: GangJob, metadata: {name: own, namespace: b},\n"
      " spec: {template: {spec: {containers: [{name: c, image: i}]}}}}");
  EXPECT_EQ(job.job, "b/own");
  EXPECT_EQ(TextAt(*cluster_.FindJob("b", "own"), {"metadata", "name"}), "own");
  const std::string manifest =
      "{apiVersion: renzan.dev/v1alpha1, kind: GangJob, metadata: {name: own}, spec: {}}";
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { Submit(manifest, {"priority=3"}); }),
              HasSubstr("priority=3"));
  EXPECT_THAT(Refusal(ErrorCode::kConfig, [&] { Submit("{apiVersion: v1, kind: Pod}"); }),
              HasSubstr("is a Pod of v1"));
  EXPECT_THAT(
      Refusal(ErrorCode::kConfig, [&] { Submit("{apiVersion: renzan.dev/v2, kind: GangJob}"); }),
      HasSubstr("renzan.dev/v2"));
}

TEST_F(KubernetesBackendTest, RefusesATakenNameAndRunsAJobAgainByAnother) {
  Submit("{name: train, command: [x]}");
  EXPECT_THAT(Refusal(ErrorCode::kCantCreate, [&] { Submit("{name: train, command: [x]}"); }),
              HasSubstr("ads/train already"));
  const JobText again = backend_->JobAgain("train");
  EXPECT_THAT(backend_->Submit({.job = again, .directory = "/"}).job, HasSubstr("ads/train-"));
}

TEST_F(KubernetesBackendTest, AsksForStopsAndCheckpoints) {
  AddJob("ads", "train", 2, 8);
  AddJob("ads", "next", 2, 8);
  Run(5 * kSecond);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->ActOn("2", JobAction::kPreempt); }),
              HasSubstr("is not running (state pending)"));
  EXPECT_EQ(backend_->ActOn("1", JobAction::kCheckpoint), "running");
  Run(2 * kSecond);
  for (const Json* pod : cluster_.Objects(kubernetes::Pods()))
    EXPECT_NE(TextAt(*pod, {"metadata", "annotations", kubernetes::kCheckpointRequestAnnotation}),
              "");
  backend_->ActOn("train", JobAction::kPreempt);
  Run(30 * kSecond);
  EXPECT_EQ(backend_->ShowJob("1").at("preemptions"), 1);
}

TEST_F(KubernetesBackendTest, HoldsAJobUntilItIsReleased) {
  AddJob("ads", "mine", 1, 8);
  EXPECT_EQ(backend_->ActOn("mine", JobAction::kHold), "pending");
  Run(5 * kSecond);
  EXPECT_EQ(StateOf("mine"), "pending");
  EXPECT_EQ(backend_->ActOn("mine", JobAction::kRelease), "pending");
  Run(5 * kSecond);
  EXPECT_EQ(StateOf("mine"), "running");
}

TEST_F(KubernetesBackendTest, ChangesWhatWaitsAndWhatRuns) {
  AddJob("ads", "runs", 2, 8);
  AddJob("ads", "waits", 2, 8);
  Run(5 * kSecond);
  ASSERT_EQ(StateOf("waits"), "pending");
  for (const char* queue : {"default", "urgent"})
    cluster_.Apply(kubernetes::Queues(), queue, Json::object());
  Run(5 * kSecond);
  Document done =
      backend_->ChangeJob("waits", {.priority = "3", .queue = "urgent", .timeout = "2h"});
  EXPECT_EQ(done.at("state"), "pending");
  EXPECT_EQ(done.at("changed"), "priority 0 -> 3, queue default -> urgent, timeout 0s -> 2h");
  EXPECT_EQ(done.at("note"), nullptr);
  const Document shown = backend_->ShowJob("waits");
  EXPECT_EQ(shown.at("priority"), 3);
  EXPECT_EQ(shown.at("queue"), "urgent");
  EXPECT_EQ(shown.at("timeout_ms"), 7'200'000);
  EXPECT_EQ(backend_->ChangeJob("waits", {.priority = "3"}).at("changed"), "");

  done = backend_->ChangeJob("runs", {.priority = "1", .timeout = "3h"});
  EXPECT_THAT(done.at("note").get<std::string>(),
              HasSubstr("running: the priority applies when it next starts"));
  EXPECT_EQ(backend_->ChangeJob("runs", {.timeout = "4h"}).at("note"), nullptr);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->ChangeJob("runs", {.queue = "urgent"}); }),
              HasSubstr("its queue can be changed only while it waits"));
  EXPECT_THAT(
      Refusal(ErrorCode::kConfig, [&] { backend_->ChangeJob("waits", {.timeout = "soon"}); }),
      HasSubstr("timeout"));
}

TEST_F(KubernetesBackendTest, ExplainsWithTheControllersSnapshot) {
  AddJob("ads", "train", 2, 8);
  AddJob("other", "next", 1, 8);
  Run(5 * kSecond);
  const View view = backend_->Observe();
  const Snapshot& theirs = world_.leader->controller.snapshot();
  ASSERT_EQ(view.snapshot.jobs.size(), theirs.jobs.size());
  for (size_t job = 0; job < theirs.jobs.size(); ++job) {
    EXPECT_EQ(view.snapshot.jobs[job].placement, theirs.jobs[job].placement);
    EXPECT_EQ(view.snapshot.jobs[job].state, theirs.jobs[job].state);
    EXPECT_EQ(view.snapshot.jobs[job].started, theirs.jobs[job].started);
    EXPECT_EQ(view.snapshot.worker_requests[view.snapshot.jobs[job].request],
              theirs.worker_requests[theirs.jobs[job].request]);
  }
  ASSERT_EQ(view.snapshot.nodes.size(), theirs.nodes.size());
  for (size_t node = 0; node < theirs.nodes.size(); ++node) {
    EXPECT_EQ(view.snapshot.nodes[node].capacity, theirs.nodes[node].capacity);
    EXPECT_EQ(view.snapshot.nodes[node].state, theirs.nodes[node].state);
  }
  const Document explained = ExplainJob(*backend_, "other/next");
  EXPECT_THAT(explained.at("why").get<std::string>(), HasSubstr("8 GPUs"));
  EXPECT_EQ(explained.at("queue_position"), 1);
  EXPECT_FALSE(explained.at("would_start_with").empty());
  EXPECT_THAT(ExplainJob(*backend_, "1").at("why").get<std::string>(),
              HasSubstr("has been running since"));
}

TEST_F(KubernetesBackendTest, ExplainsTheLimitsOfAPolicy) {
  cluster_.Apply(kubernetes::ClusterPolicies(), "default", {{"limits", {{"maxPriority", 3}}}});
  AddJob("ads", "urgent", 1, 1);
  cluster_.EditJob("ads", "urgent", [](Json& spec) { spec["priority"] = 4; });
  Run(5 * kSecond);
  const std::string why = ExplainJob(*backend_, "urgent").at("why");
  EXPECT_THAT(why, HasSubstr("at most 3"));
  EXPECT_EQ(backend_->ShowJob("urgent").at("state"), "pending");
}

TEST_F(KubernetesBackendTest, WhoSeesOneNamespaceSeesNothingOfOthers) {
  AddJob("other", "theirs", 2, 8);
  AddJob("ads", "mine", 1, 8);
  Run(5 * kSecond);
  cluster_.allowed_namespace = "ads";
  const Document listed = backend_->ListJobs({});
  ASSERT_EQ(listed.at("jobs").size(), 1u);
  EXPECT_EQ(listed.at("jobs")[0]["name"], "mine");
  EXPECT_THAT(listed.at("note").get<std::string>(), HasSubstr("only the namespace ads"));
  Refusal(ErrorCode::kNoInput, [&] { backend_->ShowJob("1"); });
  Refusal(ErrorCode::kNoPermission, [&] { backend_->ShowJob("other/theirs"); });
  Refusal(ErrorCode::kNoPermission, [&] { backend_->ActOn("other/theirs", JobAction::kCancel); });
  Refusal(ErrorCode::kNoPermission, [&] { LogOf("other/theirs", {}); });
  Refusal(ErrorCode::kNoPermission, [&] { backend_->ListNodes(); });
  Refusal(ErrorCode::kNoPermission, [&] { backend_->Observe(); });
  const Document explained = ExplainJob(*backend_, "mine");
  EXPECT_THAT(explained.at("why").get<std::string>(), HasSubstr("8 GPUs"));  // the controller's
  EXPECT_THAT(explained.at("note").get<std::string>(), HasSubstr("only what the controller says"));
}

// Its credentials expire before it reads pods.
class ExpiringApi : public SharedApi {
 public:
  using SharedApi::SharedApi;
  Json List(const kubernetes::Kind& kind, const std::string& ns,
            const kubernetes::Selector& selector) override {
    if (kind.plural == "pods")
      throw kubernetes::ApiError(401, "Unauthorized", "the credentials have expired", false);
    return SharedApi::List(kind, ns, selector);
  }
};

TEST_F(KubernetesBackendTest, RefusedCredentialsAreNoMissingRight) {
  AddJob("ads", "mine", 1, 8);
  Run(5 * kSecond);
  backend_ = MakeKubernetesBackend(std::make_unique<ExpiringApi>(cluster_, lists_),
                                   std::make_unique<FakeLogs>(), {.ns = "ads"}, clock_);
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, [&] { backend_->ShowJob("mine"); }),
              HasSubstr("have expired"));
}

TEST_F(KubernetesBackendTest, ReadsThePodsOfAnAttempt) {
  AddJob("ads", "train", 2, 8);
  Refusal(ErrorCode::kNoInput, [&] { LogOf("train", {}); });  // not started
  Run(5 * kSecond);
  EXPECT_EQ(LogOf("1", {.worker = 1, .tail = 5}), "ads/train-0-1 main follow=false tail=5\n");
  EXPECT_THAT(Refusal(ErrorCode::kNoInput, [&] { LogOf("1", {.worker = 2}); }),
              HasSubstr("has 2 workers"));
  EXPECT_THAT(Refusal(ErrorCode::kNoInput, [&] { LogOf("1", {.attempt = 1}); }),
              HasSubstr("there is no attempt 1"));
  backend_->ActOn("1", JobAction::kPreempt);
  Run(kMinute);
  EXPECT_EQ(LogOf("1", {}), "ads/train-1-0 main follow=false tail=-1\n");
  EXPECT_THAT(Refusal(ErrorCode::kNoInput, [&] { LogOf("1", {.attempt = 0}); }),
              HasSubstr("is gone with its pod"));
}

}  // namespace
}  // namespace renzan::cluster
