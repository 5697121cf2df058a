// Jobs and nodes that the daemon finds in its state when its configuration has changed.

#include <nlohmann/json.hpp>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/local/controller/controller_for_test.h"
#include "renzan/cluster/spec/cluster_documents.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The new configuration lacks what a stored job asks for: the job says so, and others run.
TEST_F(ControllerTest, AJobThatTheNewConfigurationCannotRunIsHeld) {
  config_.topology = {"rack"};
  config_.pools["own"].resources.other["rdma"] = 2;
  Restart();
  const JobId runs = Submit("command: [a]\nresources: {gpu: 1, other: {rdma: 1}}");
  Settle();
  const JobId waits = Submit("command: [a]\nresources: {gpu: 9, other: {rdma: 1}}");
  const JobId level = Submit("command: [a]\nresources: {gpu: 9}\nconstraints: {topology: rack}");
  config_.topology.clear();
  config_.pools["own"].resources.other.clear();
  Restart();
  const JobId other = Submit(kSmall);
  Settle();
  EXPECT_EQ(State(runs), RecordState::kRunning);
  EXPECT_EQ(State(other), RecordState::kRunning);
  for (const JobId job : {waits, level}) {
    EXPECT_EQ(State(job), RecordState::kPending);
    EXPECT_EQ(controller_->View(job).reason, "infeasible");
  }
  EXPECT_THAT(WhyInfeasible(controller_->snapshot(), *controller_->snapshot().Find(waits)),
              HasSubstr("the resource 'rdma', which no pool of nodes has"));
  EXPECT_THAT(WhyInfeasible(controller_->snapshot(), *controller_->snapshot().Find(level)),
              HasSubstr("topology level"));
  EXPECT_EQ(controller_->Cancel(waits, ann_), RecordState::kCancelled);
}

// Two nodes of two GPUs each, of a machine with four, had been one node of four.
TEST_F(ControllerTest, NoTwoWorkersGetOneDeviceOfTheMachine) {
  machine_gpus_ = 4;
  config_.pools["own"].nodes = "1";
  Restart();
  const JobId large = Submit("command: [a]\nresources: {gpu: 3}");
  Settle();
  config_.pools["own"].nodes = "2";
  config_.pools["own"].resources.gpu = 2;
  Restart();
  const JobId one = Submit(kSmall), two = Submit(kSmall);
  Settle();
  EXPECT_EQ(State(large), RecordState::kRunning);
  EXPECT_EQ(State(one), RecordState::kRunning);
  EXPECT_THAT(RunOf(one).plan.workers[0].devices, ElementsAre(3));
  // own-1 has a second GPU only once own-0 has no more than its own.
  EXPECT_EQ(State(two), RecordState::kPending);
  EXPECT_EQ(controller_->snapshot().nodes[1].capacity.gpu(), 1);
  End(large, EndedBy::kItself, 0);
  EXPECT_EQ(State(two), RecordState::kRunning);
  EXPECT_EQ(controller_->snapshot().nodes[1].capacity.gpu(), 2);
  EXPECT_EQ(RunOf(two).plan.workers[0].node, "own-1");
  EXPECT_THAT(RunOf(two).plan.workers[0].devices, ElementsAre(0));
  const JobId third = Submit(kSmall), fourth = Submit(kSmall);
  Settle();
  EXPECT_THAT(RunOf(third).plan.workers[0].devices, ElementsAre(1));
  EXPECT_THAT(RunOf(fourth).plan.workers[0].devices, ElementsAre(2));
}

// The last worker of a failed node that is no longer configured gives its devices back.
TEST_F(ControllerTest, AFailedNodeOfARemovedPoolGivesItsDevicesBack) {
  machine_gpus_ = 4;
  config_.pools["own"].nodes = "1";
  Restart();
  const JobId large = Submit("command: [a]\nresources: {gpu: 3}");
  Settle();
  config_.pools["new"] = config_.pools["own"];
  config_.pools.erase("own");
  Restart();
  Settle();
  const auto gpus = [&] {
    for (const Node& node : controller_->snapshot().nodes)
      if (node.name == "new-0") return node.capacity.gpu();
    return int64_t{-1};
  };
  EXPECT_EQ(gpus(), 1);
  controller_->FailNode("own-0", operator_);
  End(large, EndedBy::kItself, 0);
  EXPECT_EQ(gpus(), 4);
}

// Queues are configured on a cluster that had only the implicit one, which still has jobs.
TEST_F(ControllerTest, AQueueThatTheNewConfigurationLacksHoldsItsJobsAndAffectsNoOther) {
  const JobId runs = Submit("command: [a]\nresources: {gpu: 2}\ncheckpoint: {on_stop: true}");
  Settle();
  const JobId waits = Submit("command: [a]\nresources: {gpu: 9}");
  config_.queues["vision"].guaranteed.gpu = 4;
  config_.queues["other"].rights.max_priority = 10;
  Restart();
  const Snapshot& snapshot = controller_->snapshot();
  const JobId within = Submit("command: [a]\nqueue: vision\nresources: {gpu: 3}");
  Settle();
  EXPECT_EQ(State(within), RecordState::kRunning);
  const JobId urgent = Submit("command: [a]\nqueue: other\npriority: 10\nresources: {gpu: 4}");
  const JobId fixed =
      Submit("command: [a]\nqueue: vision\npreemptible: false\nresources: {gpu: 1}");
  EXPECT_EQ(WhyInfeasible(snapshot, *snapshot.Find(fixed)), "");
  Settle();
  EXPECT_EQ(State(fixed), RecordState::kRunning);
  EXPECT_EQ(State(within), RecordState::kRunning);
  EXPECT_THAT(RunOf(within).stops, IsEmpty());

  const std::string held = "the configuration no longer has queue default";
  EXPECT_EQ(controller_->View(waits).reason, "infeasible");
  EXPECT_EQ(Explain(snapshot, waits).why, held);
  try {
    Submit(kSmall);
    ADD_FAILURE() << "a job of the removed queue is accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(held));
  }

  // What ran continues, and is held once it has been stopped: here, for the job of priority 10.
  EXPECT_EQ(State(runs), RecordState::kStopping);
  End(runs, EndedBy::kRequest, 75);
  EXPECT_EQ(State(urgent), RecordState::kRunning);
  End(urgent, EndedBy::kItself, 0);
  EXPECT_EQ(State(runs), RecordState::kPending);
  EXPECT_EQ(Explain(snapshot, runs).why, held);

  config_.queues["default"];
  Restart();
  Settle();
  EXPECT_EQ(State(runs), RecordState::kRunning);
}

// The labels of a pool are edited while a job runs that requires the old ones.
TEST_F(ControllerTest, AJobThatNoLongerFitsItsNodeBlocksNoOther) {
  config_.pools["own"].labels["gpu_model"] = "a100";
  Restart();
  const JobId adopted =
      Submit(std::string(kSmall) + "\nconstraints: {required: {gpu_model: a100}}");
  Settle();
  ASSERT_EQ(State(adopted), RecordState::kRunning);
  config_.pools["own"].labels["gpu_model"] = "h100";
  Restart();
  const JobId other = Submit(kSmall);
  Settle();
  EXPECT_EQ(State(adopted), RecordState::kRunning);
  EXPECT_EQ(State(other), RecordState::kRunning);
  EXPECT_EQ(controller_->violation(), "");
}

// The configuration gives a node fewer GPUs than its jobs use.
class ShrunkNodeTest : public ControllerTest {
 protected:
  ShrunkNodeTest() {
    config_.pools["own"].nodes = "1";
    Restart();
    three_ = Submit("command: [a]\nresources: {gpu: 3}");
    one_ = Submit("command: [a]\nresources: {gpu: 1}");
    Settle();
    waits_ = Submit("command: [a]\nresources: {gpu: 3}");
    config_.pools["own"].resources.gpu = 2;
    Restart();
    Settle();
  }
  const Node& node() { return controller_->snapshot().nodes.at(0); }

  JobId three_, one_, waits_;
};

TEST_F(ShrunkNodeTest, ReturnsToServiceOnceItsWorkersFit) {
  EXPECT_EQ(node().state, NodeState::kDraining);
  EXPECT_EQ(node().capacity.gpu(), 4);
  End(one_, EndedBy::kItself, 0);
  EXPECT_EQ(node().state, NodeState::kDraining);
  EXPECT_EQ(node().capacity.gpu(), 3);
  Restart();
  EXPECT_EQ(node().capacity.gpu(), 3);
  const JobId two = Submit("command: [a]\nresources: {gpu: 2}");
  End(three_, EndedBy::kItself, 0);
  EXPECT_EQ(node().state, NodeState::kReady);
  EXPECT_EQ(node().capacity.gpu(), 2);
  EXPECT_EQ(State(two), RecordState::kRunning);
  EXPECT_EQ(controller_->View(waits_).reason, "infeasible");
  EXPECT_EQ(State(waits_), RecordState::kPending);
}

TEST_F(ShrunkNodeTest, IsNotRestoredBeforeItsWorkersFit) {
  EXPECT_EQ(controller_->Restore("own-0", operator_), "its old workers have ended");
  End(one_, EndedBy::kItself, 0);
  EXPECT_EQ(node().state, NodeState::kDraining);
  End(three_, EndedBy::kItself, 0);
  EXPECT_EQ(node().state, NodeState::kReady);
  EXPECT_EQ(State(waits_), RecordState::kPending);
  EXPECT_EQ(controller_->Restore("own-0", operator_), "");
  EXPECT_EQ(node().capacity.gpu(), 2);
}

TEST_F(ShrunkNodeTest, StaysOutOfServiceIfAnOperatorSaysSo) {
  controller_->Cordon("own-0", operator_);
  Restart();
  End(three_, EndedBy::kItself, 0);
  EXPECT_EQ(node().state, NodeState::kCordoned);
  EXPECT_EQ(node().capacity.gpu(), 2);
}

TEST_F(ShrunkNodeTest, IsGoneIfItHasFailed) {
  controller_->FailNode("own-0", operator_);
  Restart();
  End(three_, EndedBy::kNodeFailed, 137);
  End(one_, EndedBy::kNodeFailed, 137);
  EXPECT_EQ(node().state, NodeState::kGone);
  EXPECT_EQ(node().capacity.gpu(), 2);
}

TEST_F(ControllerTest, ANodeThatTheConfigurationLacksIsListedUntilItIsEmpty) {
  const JobId first = Submit("command: [a]\nresources: {gpu: 3}");
  const JobId second = Submit("command: [a]\nresources: {gpu: 1}");
  scripted_ = Decisions{};
  scripted_->starts = {{.job = first, .placement = {{0, 1}}},
                       {.job = second, .placement = {{0, 1}}}};
  Settle();
  config_.pools = {{"other", config_.pools["own"]}};
  Restart();
  Settle();
  const auto listed = [&] {
    const auto document = spec::NodesDocument(controller_->snapshot());
    std::vector<std::string> names;
    for (const auto& node : document.at("nodes")) names.push_back(node.at("name"));
    return names;
  };
  EXPECT_THAT(listed(), ElementsAre("other-0", "other-1", "own-0"));
  End(first, EndedBy::kItself, 0);
  EXPECT_THAT(listed(), ElementsAre("other-0", "other-1", "own-0"));
  EXPECT_EQ(controller_->snapshot().nodes.at(2).capacity.gpu(), 1);
  End(second, EndedBy::kItself, 0);
  EXPECT_THAT(listed(), ElementsAre("other-0", "other-1"));
  EXPECT_EQ(spec::UseDocument(controller_->snapshot(), 0)["nodes"]["gone"], 0);
}

TEST_F(ControllerTest, AResizeOntoARemovedNodeRequeuesTheJob) {
  const JobId job =
      Submit("command: [a]\nreplicas: 1..2\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}");
  scripted_ = Decisions{};
  scripted_->starts = {{.job = job, .placement = {{0, 1}}}};
  controller_->Turn();
  clock_.seconds += 3600;
  scripted_ = Decisions{};
  scripted_->resizes = {{.job = job, .target = {{0, 1}, {1, 1}}}};
  controller_->OverrideQuota("bob", 1, 1000, operator_);  // so that the scheduler runs
  controller_->Turn();
  ASSERT_EQ(State(job), RecordState::kResizing);
  config_.pools["own"].nodes = "1";
  Restart();
  EXPECT_EQ(RunOf(job).stops.size(), 2u);
  End(job, EndedBy::kRequest, 75);
  clock_.seconds += 3600;
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
}

}  // namespace
}  // namespace renzan::cluster::local
