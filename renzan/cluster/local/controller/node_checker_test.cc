// Health checks of nodes by command.

#include <stdexcept>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeChecks : public ControllerTest {
 protected:
  NodeChecks() {
    config_.node_health.check = {"check"};
    config_.node_health.check_interval = "1m";
    config_.node_health.check_timeout = "10s";
    Restart();
  }

  const Node& NodeNamed(const std::string& name) {
    for (const Node& node : controller_->snapshot().nodes)
      if (node.name == name) return node;
    throw std::out_of_range(name);
  }
  // Checks that are due start, and end if they have a status.
  void Pass(double seconds) {
    clock_.seconds += seconds;
    Settle();
    Settle();
  }
};

TEST_F(NodeChecks, NothingStartsBeforeANodeHasPassed) {
  const JobId job = Submit(kSmall);
  Settle();
  EXPECT_THAT(agent_.checks, SizeIs(2));
  EXPECT_EQ(State(job), RecordState::kPending);
  EXPECT_THAT(Explain(controller_->snapshot(), job).why,
              HasSubstr("own-0 is cordoned (its health check has not passed yet)"));
  agent_.check_status = {{"own-1", 0}};
  Settle();
  EXPECT_EQ(controller_->View(job).placement.at(0).node, "own-1");
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kCordoned);
  // The next check is a minute later.
  EXPECT_EQ(controller_->Turn(), controller_now() + 10'000);
}

TEST_F(NodeChecks, ANodeThatFailsTakesNothingUntilItPasses) {
  agent_.check_status = {{"own-0", 0}, {"own-1", 0}};
  Pass(0);
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kReady);
  const JobId stays = Submit("command: [a]\nresources: {gpu: 4}");
  Settle();
  const std::string node = controller_->View(stays).placement.at(0).node;
  agent_.check_output = "checking\nGPU 2 has fallen off the bus\n";
  agent_.check_status[node] = 3;
  Pass(61);
  EXPECT_EQ(NodeNamed(node).state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed(node).reason, "its health check ended with 3: GPU 2 has fallen off the bus");
  EXPECT_EQ(State(stays), RecordState::kRunning);
  Restart();
  Pass(0);
  EXPECT_EQ(NodeNamed(node).state, NodeState::kCordoned);
  agent_.check_status[node] = 0;
  Pass(61);
  EXPECT_EQ(NodeNamed(node).state, NodeState::kReady);
  EXPECT_EQ(NodeNamed(node).reason, "");
}

// It was said to be ready.
TEST_F(NodeChecks, ARestoredNodeWaitsForItsCheck) {
  agent_.check_status = {{"own-0", 3}, {"own-1", 0}};
  Pass(0);
  EXPECT_EQ(controller_->Restore("own-1", operator_), "");
  EXPECT_EQ(controller_->Restore("own-0", operator_),
            "it passes its health check, which runs again now (its health check ended with 3)");
  agent_.check_status["own-0"] = 0;
  Settle();
  Settle();
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kReady);
  EXPECT_EQ(controller_->Restore("own-0", operator_), "");
  // An operator's cordon hides that its check has failed.
  controller_->Cordon("own-0", operator_);
  agent_.check_status["own-0"] = 3;
  Pass(61);
  EXPECT_THAT(controller_->Restore("own-0", operator_), HasSubstr("ended with 3"));
  // One that has failed is another machine when it returns.
  controller_->FailNode("own-1", operator_);
  Settle();
  EXPECT_THAT(controller_->Restore("own-1", operator_), HasSubstr("has not passed yet"));
}

TEST_F(NodeChecks, ACheckThatHangsHasFailed) {
  Settle();
  Pass(11);
  EXPECT_THAT(agent_.stopped_checks, SizeIs(2));
  EXPECT_EQ(NodeNamed("own-0").reason, "its health check took longer than 10 s");
}

// It hangs in a driver, say, so that SIGKILL does not end it.
TEST_F(NodeChecks, NoOtherStartsBeforeAHangingOneHasEnded) {
  agent_.check_status = {{"own-1", 0}};
  Settle();
  for (int minute = 0; minute < 5; ++minute) {
    Pass(61);
    Pass(11);
  }
  EXPECT_THAT(agent_.checks, SizeIs(1));
  EXPECT_THAT(agent_.stopped_checks, SizeIs(1));
  EXPECT_THAT(controller_->watched(), SizeIs(1));  // its end wakes the daemon
  EXPECT_GT(controller_->Turn(), controller_now());
  agent_.check_status["own-0"] = 0;
  Settle();
  Settle();
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kReady);
  EXPECT_THAT(controller_->watched(), IsEmpty());
}

// It began when the job still ran, so it says nothing about what made the job fail.
TEST_F(NodeChecks, ACheckFromBeforeTheFailureIsRepeated) {
  agent_.check_status = {{"own-0", 0}, {"own-1", 0}};
  Pass(0);
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}");
  Settle();
  const std::string node = controller_->View(job).placement.at(0).node;
  agent_.check_status.erase(node);
  Pass(61);
  const pid_t before = agent_.checks.begin()->first;
  End(job, EndedBy::kItself, 1);
  agent_.check_status[node] = 0;
  controller_->Turn();
  EXPECT_EQ(NodeNamed(node).reason, "its health check has not passed since a job failed there");
  ASSERT_THAT(agent_.checks, SizeIs(1));
  EXPECT_NE(agent_.checks.begin()->first, before);
  controller_->Turn();
  EXPECT_EQ(NodeNamed(node).state, NodeState::kReady);
}

// Jobs went on failing while the check had the node closed.
TEST_F(NodeChecks, ANodeThatPassesMayBeSuspected) {
  agent_.check_status = {{"own-0", 0}, {"own-1", 0}};
  Pass(0);
  std::vector<JobId> jobs;
  Decisions starts;
  for (const Caller& caller : {ann_, ann_, bob_}) {
    jobs.push_back(Submit("command: [a]\nresources: {cpu: 1}", caller));
    starts.starts.push_back({jobs.back(), {{1, 1}}});
  }
  scripted_ = starts;
  Settle();
  agent_.check_status.erase("own-1");
  for (const JobId job : jobs) End(job, EndedBy::kItself, 1);
  EXPECT_EQ(NodeNamed("own-1").reason, "its health check has not passed since a job failed there");
  agent_.check_status["own-1"] = 0;
  Settle();  // that from before the last failure
  Settle();
  EXPECT_EQ(NodeNamed("own-1").state, NodeState::kCordoned);
  EXPECT_THAT(NodeNamed("own-1").reason, HasSubstr("3 jobs of 2 users failed there"));
  EXPECT_EQ(NodeNamed("own-1").until, controller_now() + kHour);
}

// The node is checked between that job and the next.
TEST_F(NodeChecks, AFailureSoonAfterTheStartHasTheNodeCheckedAtOnce) {
  agent_.check_status = {{"own-0", 0}, {"own-1", 0}};
  Pass(0);
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}");
  Settle();
  const std::string node = controller_->View(job).placement.at(0).node;
  agent_.check_status.erase(node);
  End(job, EndedBy::kItself, 1);
  EXPECT_EQ(NodeNamed(node).state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed(node).reason, "its health check has not passed since a job failed there");
  agent_.check_status[node] = 0;
  Settle();
  EXPECT_EQ(NodeNamed(node).state, NodeState::kReady);
}

TEST_F(NodeChecks, AnOperatorsCordonStays) {
  agent_.check_status = {{"own-0", 0}, {"own-1", 0}};
  Pass(0);
  controller_->Cordon("own-0", operator_);
  agent_.check_status["own-0"] = 1;
  Pass(61);
  agent_.check_status["own-0"] = 0;
  Pass(61);
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kCordoned);
  EXPECT_EQ(NodeNamed("own-0").reason, "");
}

TEST_F(NodeChecks, WithoutACheckTheConfigurationClosesNothing) {
  Settle();
  ASSERT_EQ(NodeNamed("own-0").state, NodeState::kCordoned);
  config_.node_health.check.clear();
  Restart();
  Settle();
  EXPECT_EQ(NodeNamed("own-0").state, NodeState::kReady);
}

}  // namespace
}  // namespace renzan::cluster::local
