#include "renzan/cluster/backend/kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/backend/explain_job.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/json_fields.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster {
namespace {

using kubernetes::ApiError;
using kubernetes::FakeCluster;
using kubernetes::Json;
using kubernetes::Source;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each client and the controller have an Api of their own; all lead to the same cluster.
class SharedApi : public kubernetes::Api {
 public:
  explicit SharedApi(FakeCluster& cluster) : cluster_(cluster) {}
  Json Get(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
           const std::string& subresource) override {
    return cluster_.Get(kind, ns, name, subresource);
  }
  Json List(const kubernetes::Kind& kind, const std::string& ns,
            const kubernetes::Selector& selector) override {
    return cluster_.List(kind, ns, selector);
  }
  Json Create(const kubernetes::Kind& kind, const std::string& ns, const Json& object) override {
    return cluster_.Create(kind, ns, object);
  }
  Json Replace(const kubernetes::Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource) override {
    return cluster_.Replace(kind, ns, object, subresource);
  }
  Json MergePatch(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
                  const Json& patch, const std::string& subresource) override {
    return cluster_.MergePatch(kind, ns, name, patch, subresource);
  }
  void Delete(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
              const std::string& uid, std::optional<int64_t> grace) override {
    cluster_.Delete(kind, ns, name, uid, grace);
  }
  void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
            const std::string& node) override {
    cluster_.Bind(ns, pod, uid, node);
  }
  void Watch(const kubernetes::Kind& kind, const std::string& ns,
             const kubernetes::Selector& selector, const std::string& version,
             const std::function<void(std::string_view, Json&&)>& take) override {
    cluster_.Watch(kind, ns, selector, version, take);
  }

 private:
  FakeCluster& cluster_;
};

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

// Returns a description of each request as the log.
class FakeLogs : public kubernetes::PodLogs {
 public:
  void Read(const kubernetes::LogRequest& request,
            const std::function<void(std::string_view)>& take) override {
    take(fmt::format("{}/{} {} follow={} tail={}\n", request.ns, request.pod, request.container,
                     request.follow, request.tail_lines.value_or(-1)));
  }
};

class KubernetesBackendTest : public ::testing::Test {
 protected:
  KubernetesBackendTest() : backend_(Of({.server = "https://x", .ns = "ads"})) {
    cluster_.AddNode("a", 8);
    cluster_.AddNode("b", 8);
  }

  std::unique_ptr<Backend> Of(KubernetesTarget target) {
    return MakeKubernetesBackend(std::make_unique<SharedApi>(cluster_),
                                 std::make_unique<FakeLogs>(), std::move(target), clock_);
  }

  void Run(TimeMs duration) {
    const std::string allowed = std::exchange(cluster_.allowed_namespace, "");
    world_.Run(duration);
    EXPECT_THAT(world_.wrong, ::testing::IsEmpty());
    cluster_.allowed_namespace = allowed;
  }

  void AddJob(const std::string& ns, const std::string& name, int replicas, int gpus) {
    cluster_.AddJob(
        ns, name,
        {{"replicas", replicas},
         {"checkpoint", {{"onStop", true}, {"onRequest", true}}},
         {"template",
          {{"spec",
            {{"containers",
              {{{"name", "main"},
                {"image", "trainer"},
                {"resources",
                 {{"limits", {{kubernetes::kGpuResource, std::to_string(gpus)}}}}}}}}}}}}},
        kHour);
  }

  Submitted Submit(const std::string& yaml, std::vector<std::string> overrides = {}) {
    return backend_->Submit({.job = {yaml, "job.yaml", std::move(overrides)},
                             .directory = "/home/a",
                             .image = yaml.find("kind:") == std::string::npos ? "i" : ""});
  }

  template <typename Ask>
  static std::string Refusal(ErrorCode code, Ask ask) {
    try {
      ask();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

  std::string StateOf(const std::string& job) { return backend_->ShowJob(job).at("state"); }
  std::string LogOf(const std::string& job, const LogQuery& query) {
    std::string log;
    backend_->ReadLog(job, query, [&](std::string_view piece) { log += piece; });
    return log;
  }

  kubernetes::World world_;
  ManualClock& clock_ = world_.clock;
  FakeCluster& cluster_ = world_.cluster;
  std::unique_ptr<Backend> backend_;
};

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

TEST_F(KubernetesBackendTest, AJobThatCannotBeReadDoesNotHideTheOthers) {
  AddJob("ads", "mine", 1, 4);
  AddJob("ads", "strange", 1, 4);
  Run(5 * kSecond);
  cluster_.MergePatch(kubernetes::GangJobs(), "ads", "strange", {{"status", {{"phase", "dreams"}}}},
                      "status");
  const Document listed = backend_->ListJobs({});
  ASSERT_EQ(listed.at("jobs").size(), 1u);
  EXPECT_EQ(listed.at("jobs")[0]["name"], "mine");
  for (const Document& answer : {listed, backend_->Status(), backend_->Usage()}) {
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
  EXPECT_EQ(kubernetes::TextAt(*cluster_.FindJob("b", "own"), {"metadata", "name"}), "own");
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
    EXPECT_NE(kubernetes::TextAt(
                  *pod, {"metadata", "annotations", kubernetes::kCheckpointRequestAnnotation}),
              "");
  backend_->ActOn("train", JobAction::kPreempt);
  Run(30 * kSecond);
  EXPECT_EQ(backend_->ShowJob("1").at("preemptions"), 1);
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

TEST_F(KubernetesBackendTest, RefusedCredentialsAreNoMissingRight) {
  AddJob("ads", "mine", 1, 8);
  Run(5 * kSecond);
  backend_ = MakeKubernetesBackend(std::make_unique<ExpiringApi>(cluster_),
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

TEST_F(KubernetesBackendTest, CordonsAndDrainsNodes) {
  AddJob("ads", "train", 1, 8);
  Run(5 * kSecond);
  const std::string node = backend_->ShowJob("1").at("nodes")[0];
  EXPECT_TRUE(backend_->ChangeNode(node, NodeAction::kDrain, -1));
  Run(kMinute);
  const Document shown = backend_->ShowJob("1");
  EXPECT_EQ(shown.at("state"), "running");
  EXPECT_NE(shown.at("nodes")[0], node);
  const auto state = [&] {
    const Document nodes = backend_->ListNodes();
    for (const Document& each : nodes.at("nodes"))
      if (each.at("name") == node) return each.at("state").get<std::string>();
    return std::string();
  };
  EXPECT_EQ(state(), "cordoned");
  EXPECT_TRUE(backend_->ChangeNode(node, NodeAction::kRestore, -1));
  EXPECT_EQ(state(), "ready");
  Refusal(ErrorCode::kNoInput, [&] { backend_->ChangeNode("none", NodeAction::kCordon, -1); });
  Refusal(ErrorCode::kUsage, [&] { backend_->ChangeNode(node, NodeAction::kFail, -1); });
  Refusal(ErrorCode::kUsage, [&] { backend_->ChangeNode(node, NodeAction::kDrain, 60); });
}

TEST_F(KubernetesBackendTest, SumsWhatIsUsed) {
  AddJob("ads", "train", 2, 4);
  AddJob("ads", "next", 2, 8);
  Run(10 * kSecond);
  const Document status = backend_->Status();
  EXPECT_EQ(status.at("jobs").at("running"), 1);
  EXPECT_EQ(status.at("jobs").at("pending"), 1);
  EXPECT_EQ(status.at("nodes").at("ready"), 2);
  EXPECT_EQ(status.at("users")[0].at("gpus"), 8);
  const Document usage = backend_->Usage();
  const double gpu_seconds = usage.at("queues")[0].at("gpu_seconds");
  EXPECT_GT(gpu_seconds, 8 * 5);
  EXPECT_LE(gpu_seconds, 8 * 10);
  EXPECT_EQ(usage.at("users")[0].at("gpu_seconds"), gpu_seconds);
}

TEST_F(KubernetesBackendTest, PlansAChallenge) {
  AddJob("ads", "train", 2, 4);
  Run(5 * kSecond);
  const auto plan = [&](const std::string& yaml) {
    return backend_->PlanChallenge({.job = {yaml, "job.yaml", {}}, .directory = "/"});
  };
  const Document whole = plan("{command: [x], replicas: 2, resources: {gpu: 8}}");
  EXPECT_EQ(whole.at("stops"), Document::array({1}));
  EXPECT_EQ(whole.at("fits"), true);
  EXPECT_EQ(plan("{command: [x], replicas: 3, resources: {gpu: 8}}").at("fits"), false);
}

// The controller derives the same facts for a job as were imagined.
TEST_F(KubernetesBackendTest, ImaginesTheJobThatASubmissionBecomes) {
  const Submission submission = {
      .job = {"{name: train, replicas: 2..3, resources: {gpu: 4, cpu: 2}, priority: 2,\n"
              " command: [x]}",
              "job.yaml",
              {}},
      .directory = "/",
      .image = "i"};
  View view = backend_->Observe();
  Snapshot snapshot = view.snapshot;
  EXPECT_THAT(
      Refusal(ErrorCode::kNoPermission, [&] { backend_->Imagine(submission, view, snapshot); }),
      HasSubstr("may have at most 0"));
  cluster_.Apply(kubernetes::ClusterPolicies(), "default", {{"limits", {{"maxPriority", 2}}}});
  view = backend_->Observe();
  snapshot = view.snapshot;
  const Job imagined = backend_->Imagine(submission, view, snapshot);
  backend_->Submit(submission);
  Run(2 * kSecond);
  const Job& job = world_.leader->controller.snapshot().jobs.at(0);
  EXPECT_EQ(snapshot.worker_requests[imagined.request],
            world_.leader->controller.snapshot().worker_requests[job.request]);
  EXPECT_EQ(imagined.priority, job.priority);
  EXPECT_EQ(imagined.min_workers, job.min_workers);
  EXPECT_EQ(imagined.max_workers, job.max_workers);
}

// It gets no room on a node with a taint that it does not tolerate.
TEST_F(KubernetesBackendTest, ImaginesWhatAJobDoesNotTolerate) {
  const auto imagined = [&](const std::string& replicas) {
    const View view = backend_->Observe();
    Snapshot snapshot = view.snapshot;
    const Job job = backend_->Imagine(
        {.job = {"{replicas: " + replicas + ", resources: {gpu: 8}, command: [x]}", "job.yaml", {}},
         .directory = "/"},
        view, snapshot);
    return WhyInfeasible(snapshot, job);
  };
  EXPECT_EQ(imagined("2"), "");
  cluster_.SetNode("a", [](Json& node) {
    node["spec"]["taints"] = Json::array({{{"key", "team"}, {"effect", "NoSchedule"}}});
  });
  EXPECT_EQ(imagined("1"), "");
  EXPECT_THAT(imagined("2"), HasSubstr("room for 1 on nodes with its labels"));
  // The controller says the same of the same job.
  Submit("{name: same, replicas: 2, resources: {gpu: 8}, command: [x]}");
  Run(2 * kSecond);
  EXPECT_THAT(ExplainJob(*backend_, "same").at("why").get<std::string>(), HasSubstr(imagined("2")));
}

// Includes machines that never came, and priced nodes that do not report.
TEST_F(KubernetesBackendTest, SeesPoolsAsTheControllerDoes) {
  const auto expect_same = [&] {
    const View view = backend_->Observe();
    const Snapshot& theirs = world_.leader->controller.snapshot();
    EXPECT_EQ(view.snapshot.budget_per_hour, theirs.budget_per_hour);
    for (const char* name : {"gpu", "own"}) {
      const auto of = [&](const Snapshot& snapshot) {
        const auto at = std::find_if(snapshot.pools.begin(), snapshot.pools.end(),
                                     [&](const Pool& pool) { return pool.name == name; });
        return at == snapshot.pools.end() ? Pool() : *at;
      };
      const Pool mine = of(view.snapshot), theirs_of = of(theirs);
      EXPECT_EQ(mine.max_nodes, theirs_of.max_nodes) << name;
      EXPECT_EQ(mine.price_per_hour, theirs_of.price_per_hour) << name;
      EXPECT_EQ(mine.labels, theirs_of.labels) << name;
      if (mine.max_nodes > 0) {
        EXPECT_EQ(mine.capacity, theirs_of.capacity) << name;
      }
      const auto booting = [&](const Snapshot& snapshot) {
        std::vector<TimeMs> until;
        for (const Node& node : snapshot.nodes)
          if (node.state == NodeState::kBooting) until.push_back(node.until);
        std::sort(until.begin(), until.end());
        return until;
      };
      EXPECT_EQ(booting(view.snapshot), booting(theirs));
    }
    return theirs;
  };
  cluster_.Apply(kubernetes::ClusterPolicies(), "default", {{"budgetPerHour", 40}});
  cluster_.AddNode("c", 8, {{"renzan.dev/pool", "own"}});
  cluster_.Apply(kubernetes::NodePools(), "own", {{"pricePerHour", 3}});
  cluster_.AddMachines("gpu", 8, 10 * kHour);
  cluster_.Apply(kubernetes::NodePools(), "gpu",
                 {{"capacity", {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "8"}}},
                  {"maxNodes", 4},
                  {"pricePerHour", 5},
                  {"boot", "1s"},
                  {"scaleRef",
                   {{"apiVersion", "example.com/v1"},
                    {"kind", "MachineSet"},
                    {"namespace", "machines"},
                    {"name", "gpu"}}}});
  Run(2 * kSecond);
  EXPECT_EQ(expect_same().budget_per_hour, 40);
  AddJob("ads", "large", 5, 8);
  Run(5 * kSecond);
  expect_same();
  EXPECT_EQ(cluster_.Replicas("gpu"), 2);
  cluster_.refuses_scaling = true;
  AddJob("ads", "more", 1, 8);
  Run(5 * kSecond);
  const Json refused = cluster_.Get(kubernetes::NodePools(), "", "gpu", "");
  EXPECT_THAT(kubernetes::TextAt(refused, {"status", "message"}), HasSubstr("quota of machines"));
  expect_same();
  cluster_.refuses_scaling = false;
  cluster_.DeleteJob("ads", "more");
  Run(5 * kSecond);
  cluster_.KillNode("c");
  Run(12 * kMinute);
  const Snapshot theirs = expect_same();
  EXPECT_EQ(theirs.budget_per_hour, 37);
  EXPECT_THAT(ExplainJob(*backend_, "large").at("why").get<std::string>(), HasSubstr("8 GPUs"));
}

TEST_F(KubernetesBackendTest, OverridesACapForATime) {
  const kubernetes::Kind policies{"renzan.dev", "v1alpha1", "clusterpolicies", "ClusterPolicy"};
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->OverrideQuota("ads", 16, 60); }),
              HasSubstr("no cap"));
  cluster_.Create(policies, "", Json::parse(R"({"metadata": {"name": "default"}, "spec": {
      "userCaps": [{"namespace": "ads", "maxGpus": 8}],
      "overrides": [{"namespace": "x", "maxGpus": 9, "until": "1970-01-01T00:00:00Z"}]}})"));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->OverrideQuota("ads", 8, 60); }),
              HasSubstr("must be higher"));
  backend_->OverrideQuota("ads", 16, 3600);
  const Json overrides = cluster_.Get(policies, "", "default", "").at("spec").at("overrides");
  ASSERT_EQ(overrides.size(), 1u);  // the expired one is gone
  EXPECT_EQ(overrides[0]["namespace"], "ads");
  EXPECT_EQ(overrides[0]["maxGpus"], 16);
}

}  // namespace
}  // namespace renzan::cluster
