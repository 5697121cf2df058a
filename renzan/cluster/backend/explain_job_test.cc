#include "renzan/cluster/backend/explain_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Knows one job and one snapshot.
class OneJob : public Backend {
 public:
  Document job = {{"id", 1},           {"state", "pending"},
                  {"reason", "told"},  {"ended", nullptr},
                  {"message", ""},     {"nodes", Document::array()},
                  {"warning", "slow"}, {"attempts_list", Document::array()}};
  View view;
  bool forbidden = false;

  Document ShowJob(const std::string&) override { return job; }
  View Observe() override {
    if (forbidden) Fail(ErrorCode::kNoPermission, "not yours");
    return view;
  }

  std::string User() override { FailCall(); }
  Document StateOfJob(const std::string&) override { FailCall(); }
  Document ListJobs(const JobsQuery&) override { FailCall(); }
  Submitted Submit(const Submission&) override { FailCall(); }
  JobText JobAgain(const std::string&) override { FailCall(); }
  std::string ActOn(const std::string&, JobAction) override { FailCall(); }
  Document ChangeJob(const std::string&, const spec::JobChange&) override { FailCall(); }
  void ReadLog(const std::string&, const LogQuery&,
               const std::function<void(std::string_view)>&) override {
    FailCall();
  }
  Document ListNodes() override { FailCall(); }
  std::string ChangeNode(const std::string&, NodeAction, double) override { FailCall(); }
  Document Status() override { FailCall(); }
  Document Usage(const UsageQuery&) override { FailCall(); }
  void OverrideQuota(const std::string&, int64_t, double) override { FailCall(); }
  Job Imagine(const Submission&, const View&, Snapshot&) override { FailCall(); }
  Document PlanChallenge(const Submission&) override { FailCall(); }

 private:
  [[noreturn]] static void FailCall() { Fail(ErrorCode::kSoftware, "not asked"); }
};

// Sets up two nodes of 8 GPUs, and a job that needs `gpus` per worker.
void SetUpJob(OneJob& cluster, int gpus) {
  Snapshot& snapshot = cluster.view.snapshot;
  snapshot.now = 1000;
  snapshot.queues.push_back({.name = "default"});
  for (const char* name : {"n0", "n1"}) {
    Node node{.name = name};
    node.capacity[kGpu] = 8;
    snapshot.nodes.push_back(node);
  }
  WorkerRequest request;
  request.per_worker[kGpu] = gpus;
  snapshot.jobs.push_back(
      {.id = 1, .request = snapshot.InternRequest(request), .user = snapshot.InternUser("ann")});
}

std::string WhyOf(OneJob& cluster) { return ExplainJob(cluster, "1").at("why"); }

TEST(ExplainJob, SimulatesWhatWouldStartIt) {
  OneJob cluster;
  SetUpJob(cluster, 10);
  const Document explained = ExplainJob(cluster, "1");
  EXPECT_EQ(explained.at("id"), 1);
  EXPECT_THAT(explained.at("why").get<std::string>(), HasSubstr("10 GPUs"));
  EXPECT_THAT(explained.at("would_start_with").get<std::vector<std::string>>(),
              Contains(HasSubstr("8 GPUs per worker")));
  EXPECT_EQ(explained.at("warning"), "slow");
}

TEST(ExplainJob, SuggestsNothingThatItsUserMayNotSubmit) {
  OneJob cluster;
  SetUpJob(cluster, 8);
  Snapshot& snapshot = cluster.view.snapshot;
  Job other = snapshot.jobs[0];
  other.id = 2;
  other.max_workers = other.min_workers = 2;
  other.checkpoints = true;
  other.state = JobState::kRunning;
  other.placement = {{0, 1}, {1, 1}};
  snapshot.jobs.push_back(other);
  const auto suggestions = [&] {
    return ExplainJob(cluster, "1").at("would_start_with").get<std::vector<std::string>>();
  };
  EXPECT_THAT(suggestions(), Contains(HasSubstr("priority")));
  cluster.job["max_priority"] = 0;
  EXPECT_THAT(suggestions(), Not(Contains(HasSubstr("priority"))));
  cluster.job["max_priority"] = nullptr;  // its queue is gone
  EXPECT_THAT(suggestions(), Not(Contains(HasSubstr("priority"))));
  // Of Kubernetes, where the job says nothing about it, the view does.
  int64_t most = 1;
  cluster.view.most_priority = [&](const Job&) { return most; };
  EXPECT_THAT(suggestions(), Contains(HasSubstr("priority")));
  most = 0;
  EXPECT_THAT(suggestions(), Not(Contains(HasSubstr("priority"))));
}

TEST(ExplainJob, OnlyOperatorsAreToldHowToRestoreANode) {
  OneJob cluster;
  SetUpJob(cluster, 8);
  cluster.view.snapshot.nodes[0].state = NodeState::kCordoned;
  cluster.view.snapshot.nodes[1].capacity[kGpu] = 0;
  const auto suggestions = [&] {
    return ExplainJob(cluster, "1").at("would_start_with").get<std::vector<std::string>>();
  };
  EXPECT_THAT(suggestions(), Contains("if node n0 were restored (renzan nodes restore n0)"));
  cluster.view.operates = false;
  EXPECT_THAT(suggestions(), Contains("if node n0 were restored (an operator can restore it)"));
}

TEST(ExplainJob, SaysWhatTheControllerSaidIfNoMoreMayBeSeen) {
  OneJob cluster;
  SetUpJob(cluster, 10);
  cluster.forbidden = true;
  const Document explained = ExplainJob(cluster, "1");
  EXPECT_EQ(explained.at("why"), "told");
  EXPECT_THAT(explained.at("note").get<std::string>(), HasSubstr("only what the controller says"));
  EXPECT_FALSE(explained.contains("would_start_with"));
}

TEST(ExplainJob, SaysWhereAJobIsOrHowItEnded) {
  ::setenv("TZ", "CET-1", 1);  // as `job show`, in local time
  ::tzset();
  OneJob cluster;
  SetUpJob(cluster, 8);
  Job& job = cluster.view.snapshot.jobs[0];
  job.state = JobState::kRunning;
  job.placement = {{0, 1}};
  cluster.job["state"] = "running";
  cluster.job["nodes"] = {"n0"};
  cluster.job["attempts_list"].push_back({{"started", 0}});
  EXPECT_EQ(WhyOf(cluster), "it has been running since 1970-01-01 01:00:00 on n0");
  cluster.view.snapshot.nodes[0].state = NodeState::kDraining;
  EXPECT_THAT(WhyOf(cluster), HasSubstr("n0 is being drained, but the job may finish there"));
  job.checkpoints = true;
  EXPECT_THAT(WhyOf(cluster), Not(HasSubstr("drained")));
  cluster.job["state"] = "stopping";
  EXPECT_EQ(WhyOf(cluster), "it is stopping, on n0");
  cluster.job["state"] = "failed";
  cluster.job["ended"] = 1000;
  cluster.job["message"] = "worker 0 exited with 3";
  EXPECT_EQ(WhyOf(cluster), "it ended (failed) at 1970-01-01 01:00:01: worker 0 exited with 3");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(ExplainJob, DoesNotExplainAJobThatHasJustStarted) {
  OneJob cluster;
  SetUpJob(cluster, 8);
  cluster.view.snapshot.jobs.clear();
  EXPECT_THAT(ExplainJob(cluster, "1").at("note").get<std::string>(), HasSubstr("ask again"));
}

}  // namespace
}  // namespace renzan::cluster
