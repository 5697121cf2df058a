// Nodes on which jobs fail soon after their start.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/local/controller/controller_for_test.h"
#include "renzan/cluster/spec/cluster_documents.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EarlyFailures : public ControllerTest {
 protected:
  std::string NodeOf(JobId job) { return controller_->View(job).placement.at(0).node; }

  // Each attempt on the broken node fails at once; elsewhere it takes a minute and succeeds.
  // Returns how many attempts failed.
  int RunAll(const std::string& broken) {
    int failed = 0;
    while (true) {
      std::vector<JobId> running;
      for (const JobView& view : controller_->List({}).jobs)
        if (view.record.state == RecordState::kRunning) running.push_back(view.record.id);
      if (running.empty() && controller_->snapshot().jobs.empty()) return failed;
      clock_.seconds += 2;  // past any backoff
      bool any_failed = false;
      for (const JobId job : running) {
        if (NodeOf(job) != broken) continue;
        any_failed = true;
        ++failed;
        End(job, EndedBy::kItself, 1);
      }
      if (!any_failed && !running.empty()) {
        clock_.seconds += 60;
        End(running.front(), EndedBy::kItself, 0);
      }
      Settle();
    }
  }
};

TEST_F(EarlyFailures, TheNextAttemptAvoidsTheNodeWhereItFailed) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 1}\nretries: 3\nretry_backoff: 0s");
  Settle();
  const std::string first = NodeOf(job);
  End(job, EndedBy::kItself, 1);
  EXPECT_NE(NodeOf(job), first);
  // It has failed everywhere: it is the job's own fault, or nothing else can serve it.
  End(job, EndedBy::kItself, 1);
  EXPECT_EQ(State(job), RecordState::kRunning);
}

// Of 40 jobs with three retries each, every job fails at most once there, and none fails for good.
TEST_F(EarlyFailures, ABrokenNodeDoesNotEatTheQueue) {
  config_.node_health.suspect_for = "0s";
  Restart();
  std::vector<JobId> jobs;
  for (int job = 0; job < 40; ++job)
    jobs.push_back(Submit("command: [a]\nresources: {gpu: 1}\nretries: 3\nretry_backoff: 1s"));
  Settle();
  EXPECT_LE(RunAll("own-0"), 40);
  for (const JobId job : jobs) {
    EXPECT_EQ(State(job), RecordState::kDone) << job;
    std::map<std::string, int> failures;
    for (const AttemptRecord& attempt : store_->Attempts(job))
      if (attempt.exit_code != 0) ++failures[attempt.placement[0].node];
    EXPECT_LE(failures["own-0"], 1) << job;
  }
}

TEST_F(EarlyFailures, AreKnownAfterARestart) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 1}\nretries: 3\nretry_backoff: 5s");
  Settle();
  const std::string first = NodeOf(job);
  End(job, EndedBy::kItself, 1);
  Restart();
  EXPECT_THAT(controller_->snapshot().jobs.at(0).failed_on, ElementsAre(first));
  clock_.seconds += 10;
  Settle();
  EXPECT_NE(NodeOf(job), first);
}

TEST_F(EarlyFailures, AFailureAfterALongTimeIsNotEarly) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 1}\nretries: 3\nretry_backoff: 5s");
  Settle();
  clock_.seconds += 600;
  End(job, EndedBy::kItself, 1);
  EXPECT_THAT(controller_->snapshot().jobs.at(0).failed_on, ::testing::IsEmpty());
}

// A gang blames the node of the worker that failed first.
TEST_F(EarlyFailures, AGangAvoidsTheNodeOfTheWorkerThatFailed) {
  const JobId job =
      Submit("command: [a]\nreplicas: 2\nresources: {gpu: 4}\nretries: 3\nretry_backoff: 5s");
  Settle();
  clock_.seconds += 1;
  agent_.End(DirectoryOf(job), EndedBy::kWorkerFailed, 1, controller_now() - 1000,
             controller_now());
  RunOf(job).report.end->failed_on = "own-1";
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_THAT(controller_->snapshot().jobs.at(0).failed_on, ElementsAre("own-1"));
  // It needs both nodes, so nothing else could ever serve it.
  clock_.seconds += 10;
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
}

// --- A burst of one user's jobs.

class ABurst : public EarlyFailures {
 protected:
  ABurst() {
    config_.pools["own"].nodes = "3";
    config_.pools["own"].resources.gpu = 2;
    Restart();
  }

  const Caller cid_{.uid = 77778, .name = "cid"};

  std::vector<JobId> SubmitMany(int count) {
    std::vector<JobId> jobs;
    for (int job = 0; job < count; ++job)
      jobs.push_back(Submit("command: [a]\nresources: {gpu: 1}"));
    Settle();
    return jobs;
  }

  // Without retries, until none is left: on a broken node a job fails after 60 ms, elsewhere every
  // third runs for 20 s and the others for 3 s. Returns how many failed.
  int RunAll(const std::vector<JobId>& jobs, const std::set<std::string>& broken) {
    while (true) {
      std::optional<std::pair<TimeMs, JobId>> next;
      for (const JobView& view : controller_->List({}).jobs) {
        if (view.record.state != RecordState::kRunning) continue;
        const JobId job = view.record.id;
        const TimeMs runs = broken.contains(NodeOf(job)) ? 60 : job % 3 == 0 ? 20'000 : 3'000;
        const std::pair end{store_->Attempts(job).back().started + runs, job};
        if (!next || end < *next) next = end;
      }
      if (!next) break;
      const auto [end, job] = *next;
      clock_.seconds += static_cast<double>(end - controller_now()) / 1000;
      agent_.End(DirectoryOf(job), EndedBy::kItself, broken.contains(NodeOf(job)) ? 1 : 0,
                 store_->Attempts(job).back().started, end);
      controller_->ProcessEnded(job);
      Settle();
    }
    int failed = 0;
    for (const JobId job : jobs) {
      EXPECT_TRUE(HasEnded(State(job))) << job;
      failed += State(job) == RecordState::kFailed;
    }
    return failed;
  }
};

// Each fails long before the others have shown that they run elsewhere.
TEST_F(ABurst, LosesAFewJobsToABrokenNode) { EXPECT_LE(RunAll(SubmitMany(40), {"own-1"}), 6); }

TEST_F(ABurst, LosesAFewJobsToEachOfTwoBrokenNodes) {
  EXPECT_LE(RunAll(SubmitMany(40), {"own-0", "own-1"}), 12);
}

TEST_F(ABurst, LeavesTheNodeToOthers) {
  config_.node_health.suspect_for = "0s";
  Restart();
  const std::vector<JobId> jobs = SubmitMany(40);
  const auto end_on_own_1 = [&] {
    for (const JobId job : jobs)
      if (State(job) == RecordState::kRunning && NodeOf(job) == "own-1") {
        End(job, EndedBy::kItself, 1);
        return true;
      }
    return false;
  };
  while (end_on_own_1()) continue;
  const Snapshot& snapshot = controller_->snapshot();
  ASSERT_THAT(snapshot.users,
              ::testing::Contains(::testing::Field(&User::failing_on, ::testing::SizeIs(1))));
  const nlohmann::ordered_json node = spec::NodesDocument(snapshot)["nodes"][1];
  EXPECT_EQ(node["avoided_by"][0]["user"], "ann");
  EXPECT_EQ(node["avoided_by"][0]["failed_jobs"], 4);
  EXPECT_THAT(Explain(snapshot, jobs.back()).why,
              HasSubstr("own-1 is avoided for another 60 min: 4 jobs of user ann failed there soon "
                        "after their start, and none has survived"));
  const JobId other = Submit("command: [a]\nresources: {cpu: 8}", bob_);
  Settle();
  EXPECT_EQ(NodeOf(other), "own-1");
  // That these work there says nothing about ann's.
  End(other, EndedBy::kItself, 0);
  EXPECT_FALSE(end_on_own_1());
  // Also after a restart; until an operator says that it works again.
  Restart();
  Settle();
  EXPECT_EQ(State(jobs.back()), RecordState::kPending);
  EXPECT_FALSE(end_on_own_1());
  EXPECT_EQ(controller_->Restore("own-1", operator_), "");
  Settle();
  EXPECT_TRUE(end_on_own_1());
}

TEST_F(ABurst, WaitsForOtherNodesForAnHour) {
  for (const int node : {0, 2}) {
    const JobId other = Submit("command: [a]\nresources: {gpu: 2}", cid_);
    scripted_ = Decisions{.starts = {{other, {{node, 1}}}}};
    Settle();
  }
  const std::vector<JobId> jobs = SubmitMany(40);
  const auto running = [&] {
    return std::ranges::count_if(jobs,
                                 [&](JobId job) { return State(job) == RecordState::kRunning; });
  };
  for (int job = 0; job < 4; ++job) End(jobs[job], EndedBy::kItself, 1);
  EXPECT_EQ(running(), 0);
  clock_.seconds += 3599;
  Settle();
  EXPECT_EQ(running(), 0);
  // What is submitted now may be mended.
  const JobId later = Submit(kSmall);
  Settle();
  EXPECT_EQ(NodeOf(later), "own-1");
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(running(), 1);
}

// A job that started at the same time as the first of them runs there.
TEST_F(ABurst, WhatFailsBesideOneThatRunsDoesNotCount) {
  const std::vector<JobId> jobs = SubmitMany(40);
  const auto on_own_1 = [&] {
    std::vector<JobId> there;
    for (const JobId job : jobs)
      if (State(job) == RecordState::kRunning && NodeOf(job) == "own-1") there.push_back(job);
    return there;
  };
  clock_.seconds += 3;
  for (int failed = 0; failed < 3; ++failed) End(on_own_1().at(1), EndedBy::kItself, 1);
  EXPECT_THAT(on_own_1(), ::testing::SizeIs(2));
  End(on_own_1().at(1), EndedBy::kItself, 1);
  EXPECT_THAT(on_own_1(), ::testing::SizeIs(1));
}

// The program is broken: nothing waits, and no node is closed.
TEST_F(ABurst, ThatFailsEverywhereEndsAtOnce) {
  const TimeMs before = controller_now();
  EXPECT_EQ(RunAll(SubmitMany(40), {"own-0", "own-1", "own-2"}), 40);
  EXPECT_LE(controller_now() - before, 40 * 60);
}

// --- Suspected nodes.

class SuspectedNodes : public EarlyFailures {
 protected:
  SuspectedNodes() {
    config_.pools["own"].nodes = "4";
    Restart();
  }

  const Node& NodeNamed(const std::string& name) {
    for (const Node& node : controller_->snapshot().nodes)
      if (node.name == name) return node;
    throw std::out_of_range(name);
  }

  // It fails at once on the node.
  JobId FailOn(const std::string& node, const Caller& caller, const std::string& more = "") {
    const JobId job = Submit("command: [a]\nresources: {cpu: 1}\n" + more, caller);
    for (const auto& [index, each] :
         {std::pair{0, "own-0"}, {1, "own-1"}, {2, "own-2"}, {3, "own-3"}})
      if (node == each) scripted_ = Decisions{.starts = {{job, {{index, 1}}}}};
    Settle();
    EXPECT_EQ(NodeOf(job), node);
    End(job, EndedBy::kItself, 1);
    return job;
  }
  void Suspect(const std::string& node) {
    FailOn(node, ann_);
    FailOn(node, ann_);
    FailOn(node, bob_);
  }
};

TEST_F(SuspectedNodes, JobsOfSeveralUsersCloseANodeForAnHour) {
  FailOn("own-1", ann_);
  FailOn("own-1", ann_);
  FailOn("own-1", ann_);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);  // ann may be at fault
  FailOn("own-1", bob_);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed("own-1").until, controller_now() + kHour);
  EXPECT_THAT(NodeNamed("own-1").reason,
              HasSubstr("4 jobs of 2 users failed there soon after their start"));
  Restart();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_THAT(NodeNamed("own-1").reason, HasSubstr("4 jobs of 2 users"));
  // A waiting job names it.
  for (int job = 0; job < 4; ++job) Submit("command: [a]\nresources: {gpu: 4}", ann_);
  Settle();
  EXPECT_THAT(Explain(controller_->snapshot(), 8).why,
              HasSubstr("own-1 is cordoned (4 jobs of 2 users failed there"));
  clock_.seconds += 3601;
  Settle();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
  EXPECT_EQ(NodeNamed("own-1").reason, "");
  EXPECT_EQ(State(8), RecordState::kRunning);
  // What was held against it counts no more.
  for (JobId job = 5; job <= 8; ++job) End(job, EndedBy::kItself, 0);
  FailOn("own-1", bob_);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
}

TEST_F(SuspectedNodes, AnOperatorRestoresOne) {
  Suspect("own-1");
  ASSERT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_EQ(controller_->Restore("own-1", operator_), "");
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
  Restart();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
  FailOn("own-1", bob_);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
}

// When it would be reopened is no notice: it must not end the workers.
TEST_F(SuspectedNodes, OneThatHasBecomeTooSmallKeepsItsWorkers) {
  scripted_ = Decisions{.starts = {{Submit("command: [a]\nresources: {gpu: 4}"), {{1, 1}}}}};
  Settle();
  Suspect("own-1");
  const TimeMs until = NodeNamed("own-1").until;
  ASSERT_EQ(until, controller_now() + kHour);
  config_.pools["own"].resources.gpu = 2;
  Restart();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kDraining);
  EXPECT_EQ(NodeNamed("own-1").until, kNever);
  clock_.seconds += 1800;
  Settle();
  End(1, EndedBy::kItself, 0);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed("own-1").until, until);
  clock_.seconds += 1801;
  Settle();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
}

TEST_F(SuspectedNodes, OneThatHasBecomeTooSmallKeepsItsWorkersForLong) {
  const JobId stays = Submit("command: [a]\nresources: {gpu: 4}");
  scripted_ = Decisions{.starts = {{stays, {{1, 1}}}}};
  Settle();
  Suspect("own-1");
  config_.pools["own"].resources.gpu = 2;
  Restart();
  clock_.seconds += 3601;
  Settle();
  EXPECT_EQ(State(stays), RecordState::kRunning);
  EXPECT_TRUE(RunOf(stays).failed_nodes.empty());
  End(stays, EndedBy::kItself, 0);
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
}

// It was running before they failed: it does not show that jobs can start there.
TEST_F(SuspectedNodes, AJobThatRunsThereForLongDoesNotClearIt) {
  const JobId old = Submit("command: [a]\nresources: {cpu: 1}");
  scripted_ = Decisions{.starts = {{old, {{1, 1}}}}};
  Settle();
  clock_.seconds += 600;
  Settle();
  Suspect("own-1");
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
}

// If jobs fail everywhere, the nodes are not at fault.
TEST_F(SuspectedNodes, OnlyOneOfAFewIsClosed) {
  Suspect("own-1");
  Suspect("own-2");
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed("own-2").state, NodeState::kReady);
}

TEST_F(SuspectedNodes, NeverIfTheConfigurationSaysSo) {
  config_.node_health.suspect_for = "0s";
  Restart();
  Suspect("own-1");
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kReady);
}

// With a single user, what tells the node's fault from the jobs' is that others run elsewhere.
TEST_F(SuspectedNodes, OneUsersJobsThatRunElsewhereMeanwhileCloseIt) {
  for (int job = 0; job < 40; ++job) Submit("command: [a]\nresources: {gpu: 1}");
  Settle();
  EXPECT_LE(RunAll("own-0"), 12);  // it has room for four at a time
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kCordoned);
  EXPECT_THAT(NodeNamed("own-0").reason, HasSubstr("jobs ran elsewhere"));
}

TEST_F(SuspectedNodes, AUserWithABrokenProgramClosesNoNode) {
  for (int job = 0; job < 40; ++job) {
    clock_.seconds += 60;  // to mend it
    FailOn(job % 3 == 2 ? "own-1" : "own-0", ann_);
  }
  for (const char* node : {"own-0", "own-1", "own-2"})
    EXPECT_EQ(NodeNamed(node).state, NodeState::kReady) << node;
}

}  // namespace
}  // namespace renzan::cluster::local
