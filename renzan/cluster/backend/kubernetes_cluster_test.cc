// The rest of a cluster on Kubernetes as the verbs see it: nodes, pools, usage, plans.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/backend/explain_job.h"
#include "renzan/cluster/backend/kubernetes_backend_testing.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using ::testing::HasSubstr;

TEST_F(KubernetesBackendTest, CordonsAndDrainsNodes) {
  AddJob("ads", "train", 1, 8);
  Run(5 * kSecond);
  const std::string node = backend_->ShowJob("1").at("nodes")[0];
  EXPECT_EQ(backend_->ChangeNode(node, NodeAction::kDrain, -1), "");
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
  EXPECT_EQ(backend_->ChangeNode(node, NodeAction::kRestore, -1), "");
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
  const Document usage = backend_->Usage({});
  const double gpu_seconds = usage.at("queues")[0].at("gpu_seconds");
  EXPECT_GT(gpu_seconds, 8 * 5);
  EXPECT_LE(gpu_seconds, 8 * 10);
  EXPECT_EQ(usage.at("users")[0].at("gpu_seconds"), gpu_seconds);
  ASSERT_EQ(usage.at("queue_users").size(), 1u);
  EXPECT_EQ(usage.at("queue_users")[0].at("user"), "ads");
  EXPECT_EQ(usage.at("queue_users")[0].at("gpu_seconds"), gpu_seconds);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { backend_->Usage({.from = 5}); }),
              ::testing::HasSubstr("renzan_gpu_seconds_total"));
}

TEST_F(KubernetesBackendTest, SaysWhatNamespacesHaveUsedLately) {
  cluster_.Apply(kubernetes::Queues(), "default", {{"fairShare", {{"halfLife", "1h"}}}});
  AddJob("ads", "train", 2, 4);
  Run(3 * kMinute);
  const Document shares = backend_->Usage({}).at("fair_shares");
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].at("queue"), "default");
  EXPECT_EQ(shares[0].at("of"), "gpu");
  EXPECT_EQ(shares[0].at("half_life_ms"), kHour);
  ASSERT_EQ(shares[0].at("users").size(), 1u);
  EXPECT_EQ(shares[0].at("users")[0].at("name"), "ads");
  EXPECT_GT(shares[0].at("users")[0].at("seconds"), 8 * 100);
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
  EXPECT_THAT(Refusal(ErrorCode::kNoInput,
                      [&] {
                        Submission lost = submission;
                        lost.job.overrides = {"queue=nowhere"};
                        backend_->Imagine(lost, view, snapshot);
                      }),
              HasSubstr("there is no queue 'nowhere'"));
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

TEST_F(KubernetesBackendTest, PredictsRunTimesByTheJobsThatHaveEnded) {
  AddJob("ads", "first", 1, 1);
  Run(5 * kSecond);
  for (int job = 0; job < 12; ++job) AddJob("ads", fmt::format("short-{}", job), 1, 1, kMinute);
  Run(2 * kMinute);
  const View view = backend_->Observe();
  ASSERT_EQ(view.snapshot.jobs.size(), 1u);
  const Job& first = view.snapshot.jobs.front();
  EXPECT_EQ(first.run_time.back(), 0) << "nothing had ended when it was submitted";
  EXPECT_GT(LatestRunTime(first).front(), 0);
  EXPECT_LT(LatestRunTime(first)[2], 2 * kMinute);
  Snapshot snapshot = view.snapshot;
  const Job imagined =
      backend_->Imagine({.job = {"{name: next, resources: {gpu: 1}, command: [x]}", "job.yaml", {}},
                         .directory = "/"},
                        view, snapshot);
  EXPECT_EQ(imagined.run_time, LatestRunTime(first));
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
  EXPECT_THAT(TextAt(refused, {"status", "message"}), HasSubstr("quota of machines"));
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
