// What users and the operator change of jobs after their submission.

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTraining =
    "command: [a]\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}\nretry_backoff: 0s";

class UpdateTest : public ControllerTest {
 protected:
  UpdateTest() {
    config_.queues["default"] = {};
    config_.queues["roots"].rights.members = QueueMembers{{"root"}, {}, {}};
    config_.queues["urgent"].rights.max_priority = 10;
    Restart();
  }
  std::string Update(JobId job, const spec::JobChange& change, const Caller& caller) {
    return controller_->Update(job, change, caller).what;
  }
  std::string Refusal(ErrorCode code, JobId job, const spec::JobChange& change,
                      const Caller& caller) {
    try {
      controller_->Update(job, change, caller);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "it was not refused";
    return "";
  }
  const Job& Scheduled(JobId job) { return *controller_->snapshot().Find(job); }
  std::string QueueOf(JobId job) {
    return controller_->snapshot().queues[Scheduled(job).queue].name;
  }
};

TEST_F(UpdateTest, AHigherPriorityGoesFirst) {
  const std::vector<JobId> run = {Submit(kTraining), Submit(kTraining)};
  const JobId waits = Submit(kTraining), urgent = Submit(kTraining);
  Settle();
  EXPECT_EQ(State(waits), RecordState::kPending);
  EXPECT_EQ(Update(urgent, {.priority = "5"}, operator_), "priority 0 -> 5");
  Settle();
  for (const JobId job : run)
    if (State(job) == RecordState::kStopping) End(job, EndedBy::kRequest, 75);
  EXPECT_EQ(State(urgent), RecordState::kRunning);
  EXPECT_EQ(State(waits), RecordState::kPending);
  // A running job, too, can have another priority.
  Update(urgent, {.priority = "-1"}, operator_);
  Settle();
  EXPECT_EQ(State(urgent), RecordState::kStopping);
}

TEST_F(UpdateTest, ChangesSurviveTheDaemonAndAreInTheHistory) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}\nreplicas: 3\ntimeout: 1h");
  Settle();
  EXPECT_EQ(State(job), RecordState::kPending);
  EXPECT_EQ(Update(job, {.priority = "-2", .queue = "urgent", .timeout = "2h"}, operator_),
            "priority 0 -> -2, queue default -> urgent, timeout 1h -> 2h");
  EXPECT_EQ(Update(job, {.priority = "-2", .timeout = "120m"}, operator_), "");
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(Scheduled(job).priority, -2);
    EXPECT_EQ(QueueOf(job), "urgent");
    EXPECT_EQ(Record(job).queue, "urgent");
    const JobRecord stored = *store_->FindJob(job);
    EXPECT_EQ(spec::ReadJobSpec(stored.spec, "job").timeout, "2h");
    EXPECT_EQ(stored.manifest, "{}");
    Restart();
  }
  const std::vector<EventRecord> events = store_->Events(job);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].kind, "updated");
  EXPECT_EQ(events[1].text,
            "by operator: priority 0 -> -2, queue default -> urgent, timeout 1h -> 2h");
}

TEST_F(UpdateTest, NeedsTheRightsOfASubmission) {
  if (::geteuid() != 0) GTEST_SKIP() << "without root, ann is the operator";
  const JobId job = Submit(kTraining, ann_);
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.timeout = "1h"}, bob_),
              HasSubstr("belongs to ann"));
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.priority = "1"}, ann_),
              HasSubstr("may have at most 0 (limits.max_priority"));
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.queue = "roots"}, ann_),
              HasSubstr("queue 'roots' is for its members, and user 'ann' is none of them"));
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.priority = "11", .queue = "urgent"}, ann_),
              HasSubstr("at most 10"));
  EXPECT_EQ(store_->Events(job).size(), 1u);
  EXPECT_EQ(Update(job, {.priority = "10", .queue = "urgent"}, ann_),
            "priority 0 -> 10, queue default -> urgent");
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.queue = "default"}, ann_),
              HasSubstr("priority 10: in queue 'default'"));
  // What the operator has given may stay, but not grow.
  EXPECT_EQ(Update(job, {.priority = "50"}, operator_), "priority 10 -> 50");
  EXPECT_EQ(Update(job, {.timeout = "1h"}, ann_), "timeout 0s -> 1h");
  EXPECT_EQ(Update(job, {.priority = "40"}, ann_), "priority 50 -> 40");
  Refusal(ErrorCode::kNoPermission, job, {.priority = "41"}, ann_);
}

TEST_F(UpdateTest, RefusesQueuesInWhichTheJobCannotRun) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}\nreplicas: 3");
  EXPECT_THAT(Refusal(ErrorCode::kNoInput, job, {.queue = "urgnt"}, operator_),
              HasSubstr("did you mean 'urgent'?"));
  EXPECT_THAT(Refusal(ErrorCode::kConfig, job, {.priority = "much"}, operator_),
              HasSubstr("priority"));
  EXPECT_EQ(QueueOf(job), "default");
  const JobId runs = Submit("command: [a]");
  Settle();
  EXPECT_THAT(Refusal(ErrorCode::kUsage, runs, {.queue = "urgent"}, operator_),
              HasSubstr("is running: its queue can be changed only while it waits"));
}

TEST_F(UpdateTest, AJobWhoseQueueHasBecomeAParentCanBeMoved) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}\nreplicas: 3\nqueue: urgent");
  const JobId runs = Submit("command: [a]\nqueue: urgent");
  Settle();
  config_.queues["child"].parent = "urgent";
  config_.queues["urgent"] = {};
  Restart();
  Settle();
  // It holds nothing of what the parent is guaranteed for its queues.
  EXPECT_EQ(State(runs), RecordState::kRunning);
  EXPECT_TRUE(controller_->snapshot().queues[Scheduled(runs).queue].removed);
  EXPECT_THAT(Scheduled(job).held, HasSubstr("queue urgent is now the parent of others"));
  Update(job, {.queue = "child"}, operator_);
  Settle();
  EXPECT_EQ(Scheduled(job).held, "");
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.queue = "urgent"}, operator_),
              HasSubstr("queue 'urgent' is a parent, and takes no jobs itself: use child"));
}

TEST_F(UpdateTest, AJobWhoseQueueIsGoneCanBeMoved) {
  const JobId job = Submit("command: [a]\nresources: {gpu: 4}\nreplicas: 3\nqueue: urgent");
  config_.queues.erase("urgent");
  Restart();
  EXPECT_THAT(Scheduled(job).held, HasSubstr("no longer has queue urgent"));
  Update(job, {.queue = "default"}, operator_);
  Settle();
  EXPECT_EQ(Scheduled(job).held, "");
  EXPECT_THAT(Refusal(ErrorCode::kConfig, job, {.queue = "urgent"}, operator_),
              HasSubstr("no longer has queue urgent"));
}

TEST_F(UpdateTest, ARunningAttemptGetsTheNewTimeLimit) {
  const JobId job = Submit(std::string(kTraining) + "\ntimeout: 1h");
  Settle();
  EXPECT_EQ(RunOf(job).plan.timeout_ms, 3'600'000);
  clock_.seconds += 600;
  controller_->Preempt(job, operator_);
  End(job, EndedBy::kRequest, 75);  // after 601 s
  EXPECT_EQ(RunOf(job).plan.timeout_ms, 3'600'000 - 601'000);
  Update(job, {.timeout = "2h"}, operator_);
  EXPECT_THAT(RunOf(job).time_limits, ElementsAre(7'200'000 - 601'000));
  Update(job, {.priority = "1"}, operator_);  // says nothing of it
  Update(job, {.timeout = "0s"}, operator_);
  EXPECT_THAT(RunOf(job).time_limits, ElementsAre(7'200'000 - 601'000, 0));
}

TEST_F(UpdateTest, ATimeLimitIsSentUntilTheSupervisorHasIt) {
  const JobId job = Submit(kTraining);
  Settle();
  agent_.fail_requests = true;  // the disk is full
  Update(job, {.timeout = "2h"}, operator_);
  EXPECT_TRUE(RunOf(job).time_limits.empty());
  agent_.fail_requests = false;
  clock_.seconds += 2;
  controller_->Turn();
  EXPECT_THAT(RunOf(job).time_limits, ElementsAre(7'200'000));
  // The daemon was killed after it had written the change.
  RunOf(job).time_limits.clear();
  Restart();
  EXPECT_THAT(RunOf(job).time_limits, ElementsAre(7'200'000));
}

TEST_F(UpdateTest, AnEndedJobStaysAsItWas) {
  const JobId job = Submit(kSmall);
  Settle();
  End(job, EndedBy::kItself, 0);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, job, {.priority = "1"}, operator_),
              HasSubstr("has ended already (done)"));
  // Others do not learn how.
  const Caller bob{.uid = 1'000'001, .name = "bob"};
  EXPECT_THAT(Refusal(ErrorCode::kNoPermission, job, {.priority = "1"}, bob),
              HasSubstr("belongs to"));
}

}  // namespace
}  // namespace renzan::cluster::local
