// Nodes that are cordoned, drained, interrupted or fail, with jobs on them.

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControllerTest, ACordonedNodeKeepsItsJobsAndGetsNoNewOnes) {
  const JobId running = Submit(kObeying);
  Settle();
  const std::string node = controller_->View(running).placement[0].node;
  const std::string other = node == "own-0" ? "own-1" : "own-0";
  controller_->Cordon(node, operator_);
  controller_->Cordon(other, operator_);
  const JobId pending = Submit(kObeying);
  Settle();
  EXPECT_EQ(State(running), RecordState::kRunning);
  EXPECT_EQ(State(pending), RecordState::kPending);
  Restart();
  Settle();
  EXPECT_EQ(State(pending), RecordState::kPending);
  controller_->Restore(other, operator_);
  Settle();
  EXPECT_EQ(State(pending), RecordState::kRunning);
  EXPECT_THROW(controller_->Cordon(other, bob_), Error);
}

TEST_F(ControllerTest, TheLogSaysWhoDoesWhatToANode) {
  testing::internal::CaptureStderr();
  controller_->Cordon("own-0", operator_);
  controller_->Drain("own-0", std::nullopt, operator_);
  controller_->Drain("own-1", 20'000, operator_);
  controller_->FailNode("own-1", operator_);
  controller_->Restore("own-0", operator_);
  EXPECT_THROW(controller_->Cordon("own-0", bob_), Error);
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* what : {"has cordoned node own-0\n", "drains node own-0\n",
                           "drains node own-1, which goes away in 20 s\n",
                           "has declared node own-1 failed\n", "has restored node own-0\n"})
    EXPECT_THAT(log, ::testing::HasSubstr(operator_.name + " " + what));
  EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr(bob_.name)));
}

TEST_F(ControllerTest, AJobThatCannotSaveItsWorkFinishesOnADrainedNode) {
  const JobId saves = Submit(kObeying);
  const JobId cannot = Submit("command: [a]\nresources: {gpu: 4}");
  Settle();
  for (const char* node : {"own-0", "own-1"}) controller_->Drain(node, std::nullopt, operator_);
  Settle();
  EXPECT_EQ(State(saves), RecordState::kStopping);
  EXPECT_EQ(State(cannot), RecordState::kRunning);
  End(cannot, EndedBy::kItself, 0);
  EXPECT_EQ(State(cannot), RecordState::kDone);
}

TEST_F(ControllerTest, ASpotNodeIsGoneWhenItsNoticeExpires) {
  const JobId job = Submit(kObeying);
  Settle();
  const std::string node = RunOf(job).plan.workers[0].node;
  controller_->Drain(node, 20'000, operator_);
  Settle();
  EXPECT_EQ(State(job), RecordState::kResizing);   // it moves to the other node
  EXPECT_THAT(RunOf(job).stops, ElementsAre(20));  // not the job's own 30
  clock_.seconds += 21;
  Settle();
  EXPECT_THAT(RunOf(job).failed_nodes, ElementsAre(node));
  const std::string first = DirectoryOf(job);
  End(job, EndedBy::kNodeFailed, 137);
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_NE(RunOf(job).plan.workers[0].node, node);
  Restart();
  const auto& nodes = controller_->snapshot().nodes;
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const Node& each) { return each.state == NodeState::kGone; }),
            1);
  controller_->Restore(node, operator_);
  EXPECT_THROW(controller_->Restore("nowhere", operator_), Error);
}

TEST_F(ControllerTest, AFailedNodeHasStillFailedAfterARestart) {
  const JobId job = Submit(kObeying);
  Settle();
  const std::string node = RunOf(job).plan.workers[0].node;
  controller_->FailNode(node, operator_);
  EXPECT_EQ(State(job), RecordState::kStopping);
  Restart();
  EXPECT_THAT(RunOf(job).failed_nodes, ElementsAre(node, node));
  End(job, EndedBy::kNodeFailed, 137);
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(Record(job).failures, 0);
}

TEST_F(ControllerTest, AFailedNodeCanBeRestoredBeforeItsWorkersHaveEnded) {
  const JobId job = Submit(kObeying);
  Settle();
  const std::string name = RunOf(job).plan.workers[0].node;
  const auto state_of = [&](const std::string& node) {
    for (const Node& each : controller_->snapshot().nodes)
      if (each.name == node) return each.state;
    return NodeState::kBooting;
  };
  controller_->FailNode(name, operator_);
  EXPECT_EQ(controller_->Restore(name, operator_), "its old workers have ended");
  Settle();
  EXPECT_EQ(state_of(name), NodeState::kDraining);
  EXPECT_EQ(State(job), RecordState::kStopping);
  controller_->FailNode(name, operator_);  // the last command counts
  EXPECT_EQ(controller_->Restore(name, operator_), "its old workers have ended");
  End(job, EndedBy::kNodeFailed, 137);
  EXPECT_EQ(state_of(name), NodeState::kReady);
  Restart();
  EXPECT_EQ(state_of(name), NodeState::kReady);
  EXPECT_EQ(controller_->Restore(name, operator_), "");
}

TEST_F(ControllerTest, AFailedNodeThatIsRestoredAndFailsAgainIsGone) {
  const JobId job = Submit(kObeying);
  Settle();
  const std::string name = RunOf(job).plan.workers[0].node;
  controller_->FailNode(name, operator_);
  controller_->Restore(name, operator_);
  controller_->FailNode(name, operator_);
  End(job, EndedBy::kNodeFailed, 137);
  for (const Node& each : controller_->snapshot().nodes)
    EXPECT_EQ(each.state == NodeState::kGone, each.name == name) << each.name;
}

// The daemon was killed after it had committed that the node is gone, and before anything else.
TEST_F(ControllerTest, WorkersOnAFailedNodeAreEndedAfterARestart) {
  const JobId first = Submit(kGang), second = Submit(kGang);
  Settle();
  const std::string node = RunOf(first).plan.workers[0].node;
  const std::string other = RunOf(second).plan.workers[0].node;
  ASSERT_NE(node, other);
  for (const JobId job : {first, second})
    store_->Transact([&] {
      JobRecord record = store_->FindJob(job).value();
      AttemptRecord& attempt = *record.attempt;
      attempt.placement = {{.node = node, .workers = 1, .devices = {{0, 1}}},
                           {.node = other, .workers = 1, .devices = {{0, 1}}}};
      if (job == second) attempt.placement[0].devices = attempt.placement[1].devices = {{2, 3}};
      store_->Put(record);
    });
  store_->Transact([&] {
    store_->Put(
        NodeRecord{.name = node, .pool = "own", .state = NodeState::kGone, .until = kNever});
  });
  Restart();
  Settle();
  for (const JobId job : {first, second}) {
    EXPECT_THAT(RunOf(job).failed_nodes, ElementsAre(node)) << job;
    // Workers on the other node may still write a checkpoint.
    EXPECT_THAT(RunOf(job).stops, IsEmpty()) << job;
    EXPECT_EQ(State(job), RecordState::kStopping);
    EXPECT_EQ(Record(job).preemptions, 0);
  }
}

TEST_F(ControllerTest, AShorterNoticeShortensTheGraceOfAStoppingJob) {
  const JobId job = Submit(kObeying);
  Settle();
  controller_->Preempt(job, ann_);
  EXPECT_THAT(RunOf(job).stops, ElementsAre(30));
  const std::string node = controller_->View(job).placement[0].node;
  controller_->Drain(node, 5000, operator_);
  EXPECT_THAT(RunOf(job).stops, ElementsAre(30, 5));
  EXPECT_TRUE(RunOf(job).plan.saves_on_stop);
}

}  // namespace
}  // namespace renzan::cluster::local
