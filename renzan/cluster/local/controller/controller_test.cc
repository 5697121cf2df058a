#include "renzan/cluster/local/controller/controller.h"

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControllerTest, RunsAJobToItsEnd) {
  const JobId job = Submit(kGang);
  EXPECT_EQ(State(job), RecordState::kPending);
  Settle();
  ASSERT_EQ(State(job), RecordState::kRunning);
  const AttemptPlan& plan = RunOf(job).plan;
  ASSERT_EQ(plan.workers.size(), 2u);
  EXPECT_THAT(plan.workers[0].devices, ElementsAre(0, 1));
  EXPECT_THAT(plan.workers[1].devices, ElementsAre(2, 3));
  EXPECT_EQ(plan.workers[1].local_rank, 1);
  EXPECT_EQ(plan.uid, ann_.uid);
  struct stat manifest;
  ASSERT_EQ(::stat((directory_ / "jobs/1/manifest.json").c_str(), &manifest), 0);
  EXPECT_EQ(manifest.st_mode & 0777, 0600u);
  EXPECT_EQ(controller_->watched().size(), 1u);

  End(job, EndedBy::kItself, 0);
  EXPECT_EQ(State(job), RecordState::kDone);
  EXPECT_EQ(Record(job).exit_code, 0);
  EXPECT_THAT(controller_->watched(), IsEmpty());
  EXPECT_DOUBLE_EQ(controller_->usage().Of(job).gpu_seconds, 4);
  EXPECT_THAT(controller_->snapshot().jobs, IsEmpty());
  EXPECT_EQ(Record(job).gpus, 2);  // its record stays
  EXPECT_EQ(Record(job).min_workers, 2);
  EXPECT_EQ(Record(job).max_workers, 2);
}

TEST_F(ControllerTest, ADeviceIsGivenToOneJobOnly) {
  const JobId first = Submit("command: [a]\nresources: {gpu: 1}");
  const JobId second = Submit("command: [b]\nresources: {gpu: 2}");
  Settle();
  EXPECT_THAT(RunOf(first).plan.workers[0].devices, ElementsAre(0));
  EXPECT_THAT(RunOf(second).plan.workers[0].devices, ElementsAre(1, 2));
  Restart();
  const JobId third = Submit("command: [c]\nresources: {gpu: 1}");
  Settle();
  EXPECT_THAT(RunOf(third).plan.workers[0].devices, ElementsAre(3));
}

TEST_F(ControllerTest, ThePlanSaysWhetherMemoryIsEnforced) {
  config_.pools["own"].resources.memory = "8GiB";
  Restart();
  const JobId first = Submit("command: [a]\nresources: {memory: 1GiB}");
  Settle();
  EXPECT_TRUE(RunOf(first).plan.enforce_memory);
  EXPECT_EQ(RunOf(first).plan.workers[0].memory_mib, 1024);
  config_.enforce_memory = false;
  config_.disk.max_per_job = "3GiB";
  Restart();
  const JobId second = Submit("command: [a]\nresources: {memory: 1GiB}");
  Settle();
  EXPECT_FALSE(RunOf(second).plan.enforce_memory);
  EXPECT_EQ(RunOf(second).plan.max_disk_mib, 3072);
}

TEST_F(ControllerTest, RetriesAFailureWithBackoffUpToItsLimit) {
  const JobId job = Submit("command: [a]\nretries: 1\nretry_backoff: 10s");
  Settle();
  End(job, EndedBy::kWorkerFailed, 3);
  EXPECT_EQ(State(job), RecordState::kPending);
  clock_.seconds += 9;
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  Restart();  // does not shorten the backoff
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  clock_.seconds += 2;
  Settle();
  ASSERT_EQ(State(job), RecordState::kRunning);
  End(job, EndedBy::kWorkerFailed, 4);
  EXPECT_EQ(State(job), RecordState::kFailed);
  EXPECT_EQ(Record(job).exit_code, 4);
}

TEST_F(ControllerTest, CancelsPendingAndRunningJobs) {
  const JobId running = Submit(kObeying);
  Settle();
  scripted_ = Decisions{};
  const JobId waiting = Submit(kObeying);
  EXPECT_EQ(controller_->Cancel(waiting, ann_), RecordState::kCancelled);
  EXPECT_EQ(controller_->Cancel(running, ann_), RecordState::kStopping);
  EXPECT_THAT(RunOf(running).stops, ElementsAre(30));
  End(running, EndedBy::kRequest, 75);
  EXPECT_EQ(State(running), RecordState::kCancelled);
  EXPECT_THROW(controller_->Cancel(running, ann_), Error);
}

TEST_F(ControllerTest, OnlyItsUserAndTheOperatorMayChangeAJob) {
  const JobId job = Submit(kObeying);
  Settle();
  for (const auto& act : std::vector<std::function<void()>>{
           [&] { controller_->Cancel(job, bob_); }, [&] { controller_->Preempt(job, bob_); },
           [&] { controller_->Checkpoint(job, bob_); },
           [&] { controller_->FailNode("own-0", ann_); },
           [&] { controller_->OverrideQuota("ann", 9, 1000, ann_); }}) {
    try {
      act();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNoPermission) << error.what();
    }
  }
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(controller_->Cancel(job, operator_), RecordState::kStopping);
}

TEST_F(ControllerTest, APreemptedJobKeepsItsPlaceInTheQueue) {
  const JobId job = Submit(kObeying);
  Settle();
  const TimeMs submitted = Record(job).submitted;
  EXPECT_EQ(controller_->Preempt(job, ann_), RecordState::kStopping);
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(Record(job).attempts, 2);
  EXPECT_EQ(Record(job).preemptions, 1);
  EXPECT_EQ(Record(job).failures, 0);
  EXPECT_EQ(controller_->snapshot().Find(job)->submitted, submitted);
}

TEST_F(ControllerTest, AResizedJobStartsAtItsTarget) {
  const JobId job =
      Submit("command: [a]\nreplicas: 1..2\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}");
  scripted_ = Decisions{};
  scripted_->starts = {{.job = job, .placement = {{0, 1}}}};
  controller_->Turn();
  ASSERT_EQ(State(job), RecordState::kRunning);
  clock_.seconds += 3600;
  scripted_ = Decisions{};
  const Placement target = {{0, 1}, {1, 1}};
  scripted_->resizes = {{.job = job, .target = target}};
  controller_->OverrideQuota("bob", 1, 1000, operator_);  // so that the scheduler runs
  controller_->Turn();
  ASSERT_EQ(State(job), RecordState::kResizing);
  Restart();  // the target is kept, and the stop is requested again
  EXPECT_EQ(RunOf(job).stops.size(), 2u);
  scripted_ = Decisions{};
  End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(State(job), RecordState::kRunning);
  EXPECT_EQ(Record(job).attempts, 2);
  EXPECT_EQ(controller_->snapshot().Find(job)->placement, target);
}

TEST_F(ControllerTest, ARestartAdoptsAttemptsInEveryPhase) {
  struct Case {
    const char* name;
    AttemptPhase phase;
    RecordState right_after, settled;
  };
  for (const Case& each :
       {Case{"none", AttemptPhase::kNone, RecordState::kPending, RecordState::kPending},
        Case{"starting", AttemptPhase::kStarting, RecordState::kRunning, RecordState::kRunning},
        Case{"running", AttemptPhase::kRunning, RecordState::kRunning, RecordState::kRunning},
        Case{"ended", AttemptPhase::kEnded, RecordState::kRunning, RecordState::kDone},
        Case{"lost", AttemptPhase::kLost, RecordState::kRunning, RecordState::kPending}}) {
    SCOPED_TRACE(each.name);
    const JobId job = Submit("command: [a]\nresources: {gpu: 1}\nretry_backoff: 1h");
    Settle();
    ASSERT_EQ(State(job), RecordState::kRunning);
    FakeAgent::Run& run = RunOf(job);
    if (each.phase == AttemptPhase::kEnded)
      agent_.End(DirectoryOf(job), EndedBy::kItself, 0, controller_now(), controller_now() + 5);
    else
      run.report.phase = each.phase;
    Restart();
    EXPECT_EQ(State(job), each.right_after);
    Settle();
    EXPECT_EQ(State(job), each.settled);
    EXPECT_EQ(Record(job).failures, 0);
    EXPECT_EQ(run.clean_ups, each.phase == AttemptPhase::kLost ? 1 : 0);
    const bool lives = each.settled == RecordState::kRunning;
    EXPECT_EQ(controller_->watched().count(job), lives ? 1u : 0u);
    if (!HasEnded(State(job))) controller_->Cancel(job, operator_);
    if (lives) End(job, EndedBy::kRequest, 75);
    Settle();
  }
}

TEST_F(ControllerTest, AJobThatCannotBeStartedIsTriedAgain) {
  agent_.fail_starts = true;
  const JobId job = Submit("command: [a]\nretry_backoff: 5s");
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  EXPECT_THAT(store_->Attempts(job).back().message, HasSubstr("out of processes"));
  agent_.fail_starts = false;
  clock_.seconds += 6;
  Settle();
  EXPECT_EQ(State(job), RecordState::kRunning);
}

TEST_F(ControllerTest, OnlyTheNewestAttemptsOfALiveJobAreKept) {
  const JobId job = Submit("command: [a]\nretries: 100\nretry_backoff: 0s");
  Settle();
  agent_.copy_status = 0;
  for (int attempt = 0; attempt < 6; ++attempt) {
    CreateDirectories(controller_->directories().OfAttempt(job, attempt));
    if (attempt == 4) Restart();
    if (attempt < 5) End(job, EndedBy::kWorkerFailed, 1);
  }
  Settle();
  ASSERT_EQ(Record(job).attempts, 6);
  for (int attempt = 0; attempt < 6; ++attempt)
    EXPECT_EQ(FileExists(controller_->directories().OfAttempt(job, attempt)), attempt >= 3)
        << attempt;
}

TEST_F(ControllerTest, InvalidDecisionsAreNotCarriedOut) {
  const JobId job = Submit(kObeying);
  scripted_ = Decisions{};
  scripted_->starts = {{.job = job, .placement = {{0, 2}}}};  // it has one worker
  controller_->Turn();
  EXPECT_EQ(State(job), RecordState::kPending);
}

TEST_F(ControllerTest, JobsOfRemovedQueuesAndNodesAreKept) {
  config_.queues["speech"];
  Restart();
  const JobId running = Submit(std::string(kObeying) + "\nqueue: speech");
  Settle();
  const JobId waiting = Submit(std::string(kObeying) + "\nqueue: speech");
  const std::string node = RunOf(running).plan.workers[0].node;
  config_.queues.clear();
  config_.pools["own"].nodes = "1";
  config_.pools["new"] = config_.pools["own"];
  config_.pools.erase("own");
  Restart();
  EXPECT_EQ(controller_->View(waiting).record.state, RecordState::kPending);
  Settle();
  EXPECT_EQ(State(running), RecordState::kResizing);  // its node is drained
  End(running, EndedBy::kRequest, 75);
  EXPECT_EQ(State(running), RecordState::kRunning);
  EXPECT_EQ(State(waiting), RecordState::kPending);
}

TEST_F(ControllerTest, BorrowedGpusAreAccounted) {
  config_.queues["vision"].guaranteed.gpu = 8;
  config_.queues["speech"].guaranteed.gpu = 0;
  Restart();
  const JobId job = Submit(std::string(kObeying) + "\nqueue: speech");
  Settle();
  clock_.seconds += 10;
  Restart();
  ASSERT_EQ(controller_->usage().Loans().size(), 1u);
  EXPECT_EQ(controller_->usage().Loans()[0].lender, "vision");
  EXPECT_DOUBLE_EQ(controller_->usage().Loans()[0].gpu_seconds, 40);
  End(job, EndedBy::kItself, 0);
  EXPECT_DOUBLE_EQ(controller_->usage().Loans()[0].gpu_seconds, 44);
  EXPECT_DOUBLE_EQ(controller_->usage().Of(job).gpu_seconds, 44);
}

}  // namespace
}  // namespace renzan::cluster::local
