// Faults that must not lose, duplicate or block a job: a full disk, a machine that was off, a clock
// that is set.

#include <sys/resource.h>

#include <csignal>

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// During its lifetime no file of this process can grow.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

ErrorCode CodeOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

TEST_F(ControllerTest, OnAFullDiskCommandsFailAndNothingChanges) {
  const JobId running = Submit(kSmall);
  Settle();
  {
    const FullDisk full;
    EXPECT_EQ(CodeOf([&] { Submit(kSmall); }), ErrorCode::kIo);
    EXPECT_EQ(CodeOf([&] { controller_->Cancel(running, ann_); }), ErrorCode::kIo);
    EXPECT_EQ(CodeOf([&] { controller_->Drain("own-0", 1000, operator_); }), ErrorCode::kIo);
  }
  EXPECT_EQ(State(running), RecordState::kRunning);
  EXPECT_THAT(RunOf(running).stops, IsEmpty());
  EXPECT_EQ(controller_->snapshot().nodes[0].state, NodeState::kReady);
  EXPECT_EQ(Submit(kSmall), running + 1);
}

// As after a return to an earlier version of the program, whose specifications lack a key.
TEST_F(ControllerTest, AJobWhoseSpecificationCannotBeReadEndsWithoutItsArtifacts) {
  const JobId job = Submit(std::string(kSmall) + "\nartifacts: out");
  const JobId other = Submit(kSmall);
  Settle();
  End(job, EndedBy::kItself, 3);
  ASSERT_EQ(State(job), RecordState::kCollecting);
  const TimeMs ended = controller_now();
  JobRecord record = *store_->FindJob(job);
  record.spec = "command: [a]\nkey_of_a_later_version: 1\n";
  store_->Transact([&] { store_->Put(record); });
  clock_.seconds += 10;
  Restart();
  Settle();
  EXPECT_EQ(State(job), RecordState::kFailed);
  EXPECT_EQ(Record(job).ended, ended);
  EXPECT_THAT(store_->Events(job).back().text,
              HasSubstr("artifacts could be collected (this version cannot read"));
  EXPECT_EQ(State(other), RecordState::kRunning);
}

TEST_F(ControllerTest, AnEndIsCommittedOnceTheDiskHasSpace) {
  const JobId first = Submit(kSmall), second = Submit(kSmall);
  Settle();
  for (const JobId job : {first, second}) {
    agent_.End(DirectoryOf(job), EndedBy::kItself, 0, controller_now(), controller_now() + 5);
    controller_->ProcessEnded(job);
  }
  {
    const FullDisk full;
    EXPECT_EQ(controller_->Turn(), controller_now() + 1000);  // it tries again
    EXPECT_EQ(State(first), RecordState::kRunning);
    EXPECT_THAT(controller_->trouble(), HasSubstr("state.db"));
  }
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(controller_->trouble(), "");
  EXPECT_EQ(State(first), RecordState::kDone);
  EXPECT_EQ(State(second), RecordState::kDone);
}

// Neither the job nor what was collected is lost, and the daemon does not spin at the deadline.
TEST_F(ControllerTest, ArtifactsCollectedOnAFullDiskAreCommittedOnceItHasSpace) {
  const JobId copied = Submit("command: [a]\nartifacts: out");
  Settle();
  {
    agent_.End(DirectoryOf(copied), EndedBy::kItself, 3, controller_now(), controller_now() + 5);
    controller_->ProcessEnded(copied);
    const FullDisk full;
    EXPECT_EQ(controller_->Turn(), controller_now() + 1000);
    EXPECT_EQ(State(copied), RecordState::kRunning);
    EXPECT_THAT(agent_.copies, IsEmpty());  // it starts once the end is committed
  }
  clock_.seconds += 1;
  Settle();
  ASSERT_EQ(State(copied), RecordState::kCollecting);
  {
    const FullDisk full;
    agent_.copy_status = 0;
    controller_->ProcessEnded(copied);
    EXPECT_EQ(controller_->Turn(), controller_now() + 1000);
    clock_.seconds += 100;  // beyond the deadline
    EXPECT_EQ(controller_->Turn(), controller_now() + 1000);
    EXPECT_EQ(State(copied), RecordState::kCollecting);
  }
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(State(copied), RecordState::kFailed);
  EXPECT_EQ(Record(copied).exit_code, 3);
  EXPECT_EQ(agent_.copies.size(), 1u);
  EXPECT_THAT(store_->Events(copied).back().text, ::testing::Not(HasSubstr("artifacts")));
}

TEST_F(ControllerTest, AFailedStartOnAFullDiskIsRetried) {
  std::optional<FullDisk> full;
  agent_.fail_starts = true;
  agent_.on_start = [&] { full.emplace(); };
  const JobId job = Submit(kSmall);
  controller_->Turn();
  EXPECT_EQ(State(job), RecordState::kRunning);  // as committed
  full.reset();
  agent_.on_start = nullptr;
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  agent_.fail_starts = false;
  clock_.seconds += 60;
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_THAT(agent_.runs, ::testing::SizeIs(1));
}

TEST_F(ControllerTest, AStopThatCouldNotBeSentIsSentAgain) {
  const JobId job = Submit(kSmall);
  Settle();
  agent_.fail_requests = true;
  controller_->Cancel(job, ann_);
  clock_.seconds += 2;
  controller_->Turn();
  EXPECT_THAT(RunOf(job).stops, IsEmpty());
  agent_.fail_requests = false;
  clock_.seconds += 2;
  controller_->Turn();
  EXPECT_THAT(RunOf(job).stops, ElementsAre(30));
  clock_.seconds += 2;
  controller_->Turn();
  EXPECT_THAT(RunOf(job).stops, ElementsAre(30));
}

TEST_F(ControllerTest, ANodeFailureThatCouldNotBeSentIsSentAgain) {
  const JobId job = Submit(kSmall);
  Settle();
  const std::string node = RunOf(job).plan.workers[0].node;
  agent_.fail_requests = true;
  controller_->FailNode(node, operator_);
  EXPECT_EQ(State(job), RecordState::kStopping);
  EXPECT_EQ(CodeOf([&] { controller_->Drain(node, 1000, operator_); }), ErrorCode::kUsage);
  agent_.fail_requests = false;
  clock_.seconds += 2;
  controller_->Turn();
  clock_.seconds += 2;
  controller_->Turn();
  EXPECT_THAT(RunOf(job).failed_nodes, ElementsAre(node));
}

TEST_F(ControllerTest, AnUnreadableAttemptBlocksNoOther) {
  const JobId first = Submit(kSmall), second = Submit(kSmall);
  Settle();
  agent_.unreadable = DirectoryOf(first);
  for (const JobId job : {first, second}) {
    agent_.End(DirectoryOf(job), EndedBy::kItself, 0, controller_now(), controller_now());
    controller_->ProcessEnded(job);
  }
  controller_->Turn();
  EXPECT_EQ(State(first), RecordState::kRunning);
  EXPECT_EQ(State(second), RecordState::kDone);
  Restart();  // nor does it keep the daemon from starting
  agent_.unreadable.clear();
  clock_.seconds += 1;
  Settle();
  EXPECT_EQ(State(first), RecordState::kDone);
}

TEST_F(ControllerTest, TimeoutsCountAllAttempts) {
  const JobId job = Submit(std::string(kSmall) + "\ntimeout: 10s");
  Settle();
  EXPECT_EQ(RunOf(job).plan.timeout_ms, 10'000);
  clock_.seconds += 3;
  controller_->Preempt(job, ann_);
  End(job, EndedBy::kRequest, 75);  // after one more second
  ASSERT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(RunOf(job).plan.timeout_ms, 6'000);
  EXPECT_EQ(*controller_->snapshot().Find(job)->expected_end - controller_now(), 6'000);
  clock_.seconds += 5;
  End(job, EndedBy::kTimeout, 143);
  EXPECT_EQ(State(job), RecordState::kTimeout);
}

TEST_F(ControllerTest, TimeWithTheMachineOffIsNotRunningTime) {
  const JobId job = Submit(std::string(kSmall) + "\ntimeout: 1h");
  Settle();
  clock_.seconds += 60;
  Submit(kSmall);  // the last transition before the machine is off
  RunOf(job).report = {.phase = AttemptPhase::kLost};
  clock_.seconds += 3 * 86'400;
  Restart();
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  EXPECT_EQ(Record(job).run_ms, 60'000);
  EXPECT_DOUBLE_EQ(controller_->usage().Of(job).gpu_seconds, 60);
}

TEST_F(ControllerTest, AClockThatIsSetBackDelaysNoJob) {
  const JobId job = Submit(std::string(kSmall) + "\nretries: 1\nretry_backoff: 10s");
  Settle();
  End(job, EndedBy::kWorkerFailed, 3);
  EXPECT_EQ(State(job), RecordState::kPending);
  clock_.seconds -= 30 * 86'400;
  Settle();
  clock_.seconds += 3600;
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
}

// A time server corrects the clock, or the machine was suspended: nothing ran meanwhile.
TEST_F(ControllerTest, NobodyPaysForAClockThatIsSetForward) {
  const JobId ends = Submit(kSmall), goes_on = Submit(kSmall);
  Settle();
  clock_.seconds += 20;
  Settle();
  clock_.set_forward = 48 * 3600;
  clock_.seconds += 20;
  agent_.End(DirectoryOf(ends), EndedBy::kItself, 0, controller_now() - 40'000, controller_now());
  controller_->ProcessEnded(ends);
  Settle();
  EXPECT_EQ(State(ends), RecordState::kDone);
  EXPECT_EQ(Record(ends).run_ms, 40'000);
  EXPECT_EQ(WorkerMs(store_->Attempts(ends).back()), 40'000);  // what is learned
  EXPECT_DOUBLE_EQ(controller_->usage().Of(ends).gpu_seconds, 40);
  EXPECT_DOUBLE_EQ(controller_->usage().Of(goes_on).gpu_seconds, 40);
  Restart();
  Settle();
  clock_.seconds += 20;
  EXPECT_DOUBLE_EQ(controller_->usage().Of(goes_on).gpu_seconds, 60);
  EXPECT_EQ(AttainedWorkerMs(*controller_->snapshot().Find(goes_on), controller_now()), 60'000);
}

TEST_F(ControllerTest, NodesAreBoughtAndGivenBack) {
  spec::ClusterConfig::PoolConfig spot = config_.pools["own"];
  spot.nodes = "0..2";
  spot.price_per_hour = 3600;
  spot.boot = "60s";
  spot.idle = "5m";
  config_.pools = {{"spot", spot}};
  Restart();
  const JobId job = Submit(kSmall);
  Settle();
  ASSERT_EQ(controller_->snapshot().nodes.size(), 1u);
  EXPECT_EQ(controller_->snapshot().nodes[0].name, "spot-0");
  EXPECT_EQ(controller_->snapshot().nodes[0].state, NodeState::kBooting);
  clock_.seconds += 30;
  Restart();  // does not buy it again
  Settle();
  ASSERT_EQ(controller_->snapshot().nodes.size(), 1u);
  EXPECT_EQ(State(job), RecordState::kPending);
  clock_.seconds += 30;
  Settle();
  ASSERT_EQ(State(job), RecordState::kRunning);
  End(job, EndedBy::kItself, 0);
  EXPECT_DOUBLE_EQ(controller_->usage().Of(job).cost, 0.25);  // a second of a quarter of the node
  clock_.seconds += 301;
  Settle();
  EXPECT_EQ(controller_->snapshot().nodes[0].state, NodeState::kGone);
  const JobId next = Submit(kSmall);
  Settle();
  clock_.seconds += 60;
  Settle();
  EXPECT_EQ(State(next), RecordState::kRunning);
  EXPECT_EQ(controller_->snapshot().nodes.size(), 1u);  // the same node again
}

TEST_F(ControllerTest, ABoughtNodeGetsAnUnusedName) {
  spec::ClusterConfig::PoolConfig spot = config_.pools["own"];
  spot.nodes = "2..4";
  config_.pools = {{"spot", spot}};
  Restart();
  scripted_ = Decisions{};
  scripted_->scale_out = {{.pool = 0, .nodes = 1}};
  controller_->Turn();  // spot-2
  spot.nodes = "0..4";
  config_.pools = {{"spot", spot}};
  Restart();
  scripted_ = Decisions{};
  scripted_->scale_out = {{.pool = 0, .nodes = 3}};
  controller_->Turn();
  std::set<std::string> names;
  for (const Node& node : controller_->snapshot().nodes) names.insert(node.name);
  EXPECT_THAT(names, ElementsAre("spot-0", "spot-1", "spot-2", "spot-3"));
}

TEST_F(ControllerTest, OnlyARootDaemonTakesJobsOfOtherUsers) {
  daemon_uid_ = ann_.uid;
  Restart();
  EXPECT_GT(Submit(kSmall), 0);
  const Submission of_root{
      .spec = spec::ReadJobSpec(kSmall, "job.yaml"), .manifest = "{}", .caller = operator_};
  EXPECT_EQ(CodeOf([&] { controller_->Submit(of_root); }), ErrorCode::kNoPermission);
}

TEST_F(ControllerTest, OnlyACapCanBeOverridden) {
  config_.users["bob"].max_gpus = 4;
  Restart();
  EXPECT_EQ(CodeOf([&] { controller_->OverrideQuota("ann", 8, 1000, operator_); }),
            ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { controller_->OverrideQuota("bob", 4, 1000, operator_); }),
            ErrorCode::kUsage);
  EXPECT_THAT(store_->QuotaOverrides(), IsEmpty());
  controller_->OverrideQuota("bob", 5, 1000, operator_);
  EXPECT_EQ(controller_->snapshot().users[0].CapAt(controller_now()), 5);
}

TEST_F(ControllerTest, RunningTimeDoesNotDependOnTheClock) {
  const JobId job = Submit("command: [a]\nretries: 3\nretry_backoff: 0s\ntimeout: 10m");
  Settle();
  const TimeMs started = controller_now();
  agent_.End(DirectoryOf(job), EndedBy::kWorkerFailed, 3, started, started + 3'600'000);
  RunOf(job).report.end->ran_ms = 6'000;  // the clock was set meanwhile
  controller_->ProcessEnded(job);
  Settle();
  EXPECT_EQ(Record(job).run_ms, 6'000);
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(RunOf(job).plan.timeout_ms, 594'000);
}

}  // namespace
}  // namespace renzan::cluster::local
